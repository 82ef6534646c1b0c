import { INGEST_TOKEN, type Pod, request, startPod } from '../pod.ts';
import { type Admin, adminOf } from '../postgres/admin.ts';
import { createDatabase } from '../postgres/postgres.ts';
import { started } from '../started.ts';

const DEVICES = 100;
const FIRST_IMEI = 350_000_000_000_000;

/** What the ingest listener says of a batch. */
export interface Summary {
  readonly accepted: number;
  readonly duplicates: number;
  readonly late: number;
  readonly rejected: readonly { readonly index: number; readonly code: string; readonly message: string }[];
  readonly ignored: readonly { readonly index: number; readonly field: string }[];
}

/** The summary of one point that was new. */
export const STORED: Summary = { accepted: 1, duplicates: 0, late: 0, rejected: [], ignored: [] };

/** A pod, an account with a key for everything, and devices that have never been heard of. */
export interface IngestService {
  readonly pod: Pod;
  readonly admin: Admin;
  readonly key: string;
  /** A device that no other test of the file has used. */
  newDevice(): string;
  /** Sends a point or an array of points to /positions; throws unless the answer is 200. */
  send(points: unknown): Promise<Summary>;
  /** `data` of a route of v3. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  read(path: string): Promise<any>;
  // biome-ignore lint/suspicious/noExplicitAny: see read
  history(imei: string): Promise<any[]>;
  // biome-ignore lint/suspicious/noExplicitAny: see read
  detail(imei: string): Promise<any>;
}

/** Starts one for the tests of the file or suite that calls this, and stops it after them. */
export const ingestService = (): IngestService => started(startIngestService, ({ pod }) => pod.stop());

export async function startIngestService(): Promise<IngestService> {
  const database = await createDatabase();
  const admin = adminOf(database.url);
  await admin.account('owner@example.com', { plan: 'enterprise' });
  const { key } = await admin.key('owner@example.com');
  const imeis = Array.from({ length: DEVICES }, (_, n) => String(FIRST_IMEI + n));
  await admin.importDevices(
    'owner@example.com',
    imeis.map((imei) => ({ imei })),
  );
  const pod = await startPod(database.url);
  const read = async (path: string) => (await pod.get(`/api/v3${path}`, key)).body.data;
  return {
    pod,
    admin,
    key,
    read,
    history: (imei) => read(`/devices/${imei}/history?limit=1000`),
    detail: (imei) => read(`/devices/${imei}`),
    newDevice: () => {
      const imei = imeis.pop();
      if (imei === undefined) throw new Error(`a test file may use ${DEVICES} devices`);
      return imei;
    },
    send: async (points) => {
      const { status, body, text } = await request(`${pod.ingest}/positions`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'X-Ingest-Token': INGEST_TOKEN },
        body: JSON.stringify(points),
      });
      if (status !== 200) throw new Error(`/positions answered ${status}: ${text}`);
      return body.data;
    },
  };
}

/** A point near Rome as /positions takes it; `values` say what is different. */
export const wirePoint = (imei: string, recordedAtMs: number, values: object = {}) => ({
  imei,
  recorded_at: recordedAtMs,
  latitude: 41.9,
  longitude: 12.5,
  ...values,
});
