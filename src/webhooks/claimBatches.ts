import { Batches } from '../lib/batches.ts';
import type { Sql } from '../postgres/sql.ts';
import {
  type ClaimedEndpoint,
  type Completed,
  type Completion,
  claimEndpoints,
  completeAndClaim,
  completeAndClaimAll,
} from './claims.sql.ts';

/** Endpoints of one statement: few enough that none waits for long, enough to be worth the round trip. */
const BATCH_SIZE = 64;
/** Statements of one kind at a time. What is asked for meanwhile makes up the next. */
const STATEMENTS = 1;

/** Claims of a whole pod: what is asked for at about the same time becomes one statement. */
export class ClaimBatches {
  readonly #sql: Sql;
  readonly #claims: Batches<number, ClaimedEndpoint | undefined>;
  readonly #completions: Batches<Completion, Completed | 'busy'>;

  constructor(sql: Sql) {
    this.#sql = sql;
    const limits = { size: BATCH_SIZE, parallel: STATEMENTS };
    this.#claims = new Batches({ ...limits, run: (ids) => claimEndpoints(sql, ids) });
    this.#completions = new Batches({ ...limits, run: (all) => completeAndClaimAll(sql, all) });
  }

  /** As claimEndpoints, for one. */
  claim(webhookId: number): Promise<ClaimedEndpoint | undefined> {
    return this.#claims.ask(webhookId);
  }

  /** As the function of the same name. A locked row keeps only this completion waiting, not the rest of its batch. */
  async completeAndClaim(completion: Completion): Promise<Completed> {
    const completed = await this.#completions.ask(completion);
    return completed === 'busy' ? completeAndClaim(this.#sql, completion) : completed;
  }
}
