import type { Steps } from '../../lib/workTurns.ts';
import { ColumnRoom } from '../codec/pointColumns.ts';
import { mergedPoints, type PointsRead } from '../points.sql.ts';
import type { Period } from '../summary/calendarLedger.ts';
import { Summary, type SummaryRequest } from '../summary/summary.ts';

/** With both ends of the window. */
export interface FleetSummaryRequest extends SummaryRequest {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A device whose points have all been added up. */
export interface EndedDevice {
  /** The how manieth device it is, from 0. */
  readonly n: number;
  readonly periods: readonly Period[];
}

/** Adds up the points of devices, one device after the other, statement after statement. */
export class DeviceSums {
  readonly #request: FleetSummaryRequest;
  readonly #room = new ColumnRoom();
  /** The device that is being added up. */
  #n = 0;
  /** null: the device has left what the reader sees. */
  #summary: Summary | null;

  constructor(request: FleetSummaryRequest) {
    this.#request = request;
    this.#summary = new Summary(request);
  }

  /** Returns the devices whose points have ended. A step unpacks one row, or adds up some points. Throws DamagedPoints. */
  *add({ found, until }: PointsRead): Steps<EndedDevice[]> {
    const ended: EndedDevice[] = [];
    const isLastWhole = until.ms >= this.#request.toMs;
    for (const [at, stored] of found.entries()) {
      if (stored === null) this.#summary = null;
      else if (this.#summary !== null) {
        for (const points of mergedPoints(stored, null, this.#room)) {
          yield* this.#summary.take(points);
          yield;
        }
      }
      if (at < found.length - 1 || isLastWhole) this.#end(ended);
    }
    return ended;
  }

  #end(ended: EndedDevice[]): void {
    const n = this.#n++;
    if (this.#summary !== null) ended.push({ n, periods: this.#summary.finish() });
    this.#summary = new Summary(this.#request);
  }
}
