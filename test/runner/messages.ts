/** What goes over the channel between the run and its workers. */

/** To a worker: the next test file, from the folder of the project. It ends when the channel is closed. */
export interface FileOrder {
  readonly file: string;
  /** How long after its last test it may have something open, such as a server or a timer. */
  readonly openLimitMs: number;
}

/** From a worker: a test file and all that it has started has ended. */
export interface FileResult {
  readonly file: string;
  readonly counts: Readonly<Counts>;
  /** Texts for people, each with the place, the name and the error. */
  readonly failures: readonly string[];
  readonly skipped: readonly SkippedTest[];
  readonly seconds: number;
}

export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

export interface SkippedTest {
  readonly name: string;
  readonly reason: string;
}
