/** Deliveries to paths below this one are answered at once. Only they count. */
export const HEALTHY_PATH = '/healthy/';
/** Deliveries to these are never answered. All others are answered late. */
export const HANGING_PATH = '/hanging/';
