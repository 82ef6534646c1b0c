/** Devices that the points of a batch may ask for together. */
export const BATCH_DEVICES_MAX = 10_000;
/** Areas that are listed for one point. */
export const CONTAINING_MAX = 200;
