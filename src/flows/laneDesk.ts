import { Batches } from '../base/batches.ts';
import {
  advanceLane,
  advanceLanes,
  type LaneMove,
  type MovedLane,
  type OpenedLane,
  openLanes,
} from '../store/laneSteps.ts';
import type { Sql } from '../store/sql.ts';

/** Lanes of one statement: few enough that none waits for long, many enough that the statement is worth it. */
const BATCH_LANES = 64;
/** One statement of a kind at a time: what ends meanwhile makes up the next. */
const STATEMENTS = 1;

/** Opens lanes and goes on in them for all of a pod: what is asked for at about the same time is one statement. */
export class LaneDesk {
  readonly #sql: Sql;
  readonly #opening: Batches<number, OpenedLane | undefined>;
  readonly #moving: Batches<LaneMove, MovedLane | 'busy'>;

  constructor(sql: Sql) {
    this.#sql = sql;
    const limits = { size: BATCH_LANES, parallel: STATEMENTS };
    this.#opening = new Batches({ ...limits, run: (ids) => openLanes(sql, ids) });
    this.#moving = new Batches({ ...limits, run: (moves) => advanceLanes(sql, moves) });
  }

  /** As openLanes, for one. */
  open(webhookId: number): Promise<OpenedLane | undefined> {
    return this.#opening.ask(webhookId);
  }

  /** As advanceLane. Who finds a row locked waits for it alone, not with the others. */
  async advance(move: LaneMove): Promise<MovedLane> {
    const moved = await this.#moving.ask(move);
    return moved === 'busy' ? advanceLane(this.#sql, move) : moved;
  }
}
