import { Agent, request } from 'node:http';
import { parseJsonText } from '../../lib/parseJson.ts';
import type { SimulatedPoint } from './simulatedFleet.ts';

/** What the service did with a batch. */
interface BatchCounts {
  readonly accepted: number;
  readonly duplicates: number;
  readonly late: number;
  readonly rejected: readonly { readonly code: string; readonly message: string }[];
}

/** 'unavailable' may be over soon: the same batch can be sent again. 'rejected' stays so. */
export type SendOutcome =
  | { readonly kind: 'taken'; readonly counts: BatchCounts }
  | { readonly kind: 'rejected'; readonly message: string }
  | { readonly kind: 'unavailable'; readonly message: string };

export interface IngestClient {
  send(points: readonly SimulatedPoint[]): Promise<SendOutcome>;
  close(): void;
}

const ANSWER_LIMIT_MS = 30_000;
const FORBIDDEN = 403;

/** Sends batches to the ingest listener over at most `connections` connections, which stay open. */
export function openIngestClient(target: {
  host: string;
  port: number;
  token: string;
  connections: number;
}): IngestClient {
  const { host, port, token, connections } = target;
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const post = (body: Buffer): Promise<{ status: number; text: string }> =>
    new Promise((resolve, reject) => {
      const headers = {
        'content-type': 'application/json',
        'content-length': body.length,
        'x-ingest-token': token,
      };
      const call = request({ agent, host, port, path: '/positions', method: 'POST', headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') });
        });
      });
      call.setTimeout(ANSWER_LIMIT_MS, () =>
        call.destroy(new Error(`no answer in ${ANSWER_LIMIT_MS / 1_000} s`)),
      );
      call.on('error', reject);
      call.end(body);
    });
  return {
    async send(points) {
      try {
        return outcomeOf(await post(Buffer.from(JSON.stringify(points))), `${host}:${port}`);
      } catch (error) {
        return { kind: 'unavailable', message: `${host}:${port} does not answer (${reasonOf(error)})` };
      }
    },
    close: () => agent.destroy(),
  };
}

function outcomeOf({ status, text }: { status: number; text: string }, place: string): SendOutcome {
  const counts = status === 200 ? parseCounts(text) : null;
  if (counts !== null) return { kind: 'taken', counts };
  if (status === FORBIDDEN) {
    return {
      kind: 'rejected',
      message: `${place} denies the token; set INGEST_TOKEN to that of the running service`,
    };
  }
  const message = `${place} answered ${status}: ${text.slice(0, 200)}`;
  return { kind: status >= 500 ? 'unavailable' : 'rejected', message };
}

function parseCounts(text: string): BatchCounts | null {
  const data = (parseJsonText(text) as { data?: Partial<BatchCounts> } | null | undefined)?.data;
  const { accepted, duplicates, late, rejected } = data ?? {};
  if (typeof accepted !== 'number' || typeof duplicates !== 'number' || typeof late !== 'number') return null;
  return { accepted, duplicates, late, rejected: Array.isArray(rejected) ? rejected : [] };
}

/** Node reports a name that resolves to several addresses, none of which listens, without a message of its own. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || ('code' in error ? String(error.code) : error.name);
}
