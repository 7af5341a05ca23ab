/** All that is computed: no document, no network, no storage. Tests run the built file against Python. */
export * from "./engine/format";
export * from "./engine/recommender";
export * from "./client/round";
export { newSecret, subkey, uniform } from "./client/randomness";
export { tableOf } from "./attack/leaves";
export { oneRound, read } from "./attack/one_round";
export { leakOf } from "./attack/leak";
