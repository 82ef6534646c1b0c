/** Deliveries to paths below this one are answered at once, and only they are counted … */
export const HEALTHY_PATH = '/healthy/';
/** … to these never, and to all others late. */
export const HANGING_PATH = '/hanging/';
