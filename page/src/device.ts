/** A browser as a device of a server: a file of its own, which only the page of a server loads. */
export { BrowserDevice } from "./device/device";
export { checkBudget, POLICY } from "./device/policy";
export { askedBudget } from "./device/budget";
export { checkOffer, checkUnchanged, newestTable, scaleText } from "./device/round";
export { sharedModel } from "./device/model";
export { checkedState } from "./device/steps";
export { firstState, momentCount, momentsOf, nextState } from "./server/round";
export { groupOf } from "./secure/groups";
export { matrixOf, requestDigest, requestOf, rounds, sumSession } from "./wire/request";
export { firstItems } from "./wire/catalogue";
export { packetOf, Refusal } from "./wire/packet";
export { checkTask, taskOf } from "./wire/task";
export { configOf, fixedSettings, number, optionsOf, section } from "./wire/settings";
export { calibrated, epsilonOf } from "./privacy/accounting";
export { addShare, encodingOf, leastPersonsOf, termsOf } from "./secure/terms";
export { encode, zeros } from "./secure/ring";
export { uniformOf } from "./privacy/noise";
export { statisticsOf } from "./privacy/person";
