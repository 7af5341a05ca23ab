/** All that is computed: no document, no network, no storage. Tests run the built file against Python. */
export * from "./engine/format";
export * from "./engine/recommender";
