/** An endpoint, and in how many milliseconds it is due. */
export interface DueEndpoint {
  readonly webhookId: number;
  readonly dueInMs: number;
}
