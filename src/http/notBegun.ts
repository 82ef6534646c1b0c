import type { Answer } from './answer.ts';

/** A long answer could not begin. Another one is sent instead. */
export class NotBegun extends Error {
  override name = 'NotBegun';
  readonly answer: Answer;

  constructor(answer: Answer) {
    super('the answer could not begin');
    this.answer = answer;
  }
}
