import type { Config } from '../../config.ts';
import { systemClock } from '../../lib/clock.ts';
import { invariant } from '../../lib/invariant.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { reachableHost } from '../../readyText.ts';
import type { Service } from '../../wiring.ts';
import { drive, openIngestClient, SENDERS, type SendOutcome } from '../simulate/drive.ts';
import { createFleet, type SimulatedPoint } from '../simulate/simulatedFleet.ts';

/** How many vehicles drive, and how often each reports. */
export const VEHICLES = 150;
const REPORT_EVERY_S = 2;
/** Rome, between the Pantheon and the Colosseum: the town of the simulation is 9 km wide. */
const CENTRE = { lat: 41.8945, lng: 12.4845 };
/** With this seed the vehicles near the Colosseum are driving when the demo starts. */
const SEED = 17;

/** The vehicles of the demo on their way through the ingest listener. */
export interface DemoTown {
  /** Sends the first point of every vehicle; settles when all are stored. */
  arrive(): Promise<Result<null, string>>;
  /** Drives until aborted. Fails when the service rejects the points or stays away. */
  drive(signal: AbortSignal, complain: (line: string) => void): Promise<Result<null, string>>;
  /** A vehicle that moves right now. */
  fastestImei(): string;
  /** What went on since the last call, in one line. */
  progress(): string;
  close(): void;
}

export function openTown(config: Config, service: Service, imeis: readonly string[]): DemoTown {
  const token = config.ingestTokens?.[0] ?? service.generatedIngestToken;
  invariant(token !== null, 'a service without a configured token has a generated one');
  const host = reachableHost(config.ingestHost);
  const client = openIngestClient({ host, port: service.ingestPort, token, connections: SENDERS });
  const fleet = createFleet({ imeis, seed: SEED, startMs: systemClock(), centre: CENTRE });
  const speeds = new Map<string, number>();
  let stored = 0;
  let shown = { stored, atMs: systemClock() };

  const send = async (points: readonly SimulatedPoint[]): Promise<SendOutcome> => {
    const outcome = await client.send(points);
    if (outcome.kind === 'taken') {
      stored += outcome.counts.accepted;
      for (const point of points) speeds.set(point.imei, point.speed_kmh);
    }
    return outcome;
  };
  return {
    arrive: async () => {
      const nowMs = systemClock();
      const outcome = await send(imeis.map((_, index) => fleet.step(index, nowMs)));
      if (outcome.kind !== 'taken') return fail(outcome.message);
      const [rejected] = outcome.counts.rejected;
      return rejected === undefined ? ok(null) : fail(`a first point was rejected: ${rejected.message}`);
    },
    drive: async (signal, complain) => {
      shown = { stored, atMs: systemClock() };
      let available = true;
      const watched = async (points: readonly SimulatedPoint[]): Promise<SendOutcome> => {
        const outcome = await send(points);
        if (outcome.kind === 'unavailable' && available && !signal.aborted) complain(outcome.message);
        available = outcome.kind !== 'unavailable';
        return outcome;
      };
      const driven = await drive({
        fleet,
        devices: imeis.length,
        pointsPerSecond: imeis.length / REPORT_EVERY_S,
        seconds: Number.POSITIVE_INFINITY,
        client: { send: watched },
        interrupted: signal,
        nowMs: systemClock,
        say: () => undefined, // progress() says it in plain words
      });
      return driven.ok ? ok(null) : driven;
    },
    fastestImei: () => [...speeds].reduce((a, b) => (b[1] > a[1] ? b : a))[0],
    progress: () => {
      const nowMs = systemClock();
      const rate = Math.round(((stored - shown.stored) * 1_000) / Math.max(1, nowMs - shown.atMs));
      shown = { stored, atMs: nowMs };
      const moving = [...speeds.values()].filter((speedKmh) => speedKmh > 0).length;
      return `${rate} points/s, ${moving} of ${imeis.length} vehicles moving, ${stored} points stored`;
    },
    close: () => client.close(),
  };
}
