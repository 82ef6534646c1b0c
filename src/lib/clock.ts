/** Where the time comes from: epoch milliseconds. Passed in, so that tests can set it. */
export type Clock = () => number;

export const systemClock: Clock = () => Date.now();
