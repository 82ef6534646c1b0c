/** An endpoint, and in how many milliseconds to look at its lane. */
export interface DueLane {
  readonly webhookId: number;
  readonly dueInMs: number;
}
