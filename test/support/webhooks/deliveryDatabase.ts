import { createSecretKey, randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import { parseCidrs } from '../../../src/access/ipAddress.ts';
import { invariant } from '../../../src/lib/errors.ts';
import { weekStartMs } from '../../../src/lib/time.ts';
import { DELIVERIES, ensureWeeks } from '../../../src/postgres/partitions.ts';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { insertAccount, lockForNewTenants } from '../../../src/tenants/accounts.sql.ts';
import {
  type Claim,
  type Claimed,
  claimDeliveries,
  insertDeliveries,
} from '../../../src/webhooks/delivery/claims.sql.ts';
import { claimInBatches, type DeliverPorts } from '../../../src/webhooks/delivery/deliverEndpoint.ts';
import type { SendResult, WebhookRequest } from '../../../src/webhooks/delivery/sendWebhook.ts';
import { newEventId, newSecret, seal } from '../../../src/webhooks/delivery.ts';
import type { EndpointDraft } from '../../../src/webhooks/endpoint.ts';
import { insertWebhook } from '../../../src/webhooks/webhooks.sql.ts';
import { createDatabase } from '../postgres/postgres.ts';

const KEY = createSecretKey(Buffer.alloc(32, 7));
const ENDPOINTS_MAX = 1_000;

/** A database with one account, to queue deliveries in without any pod. */
export interface DeliveryDatabase {
  readonly url: string;
  readonly sql: Sql;
  readonly accountId: number;
  /** The id of another account. */
  account(email: string): Promise<number>;
  /** The id of a new endpoint, of the first account unless another is named. */
  endpoint(draft?: Partial<EndpointDraft>, ownerId?: number): Promise<number>;
  /** Ids of new deliveries, in the order in which they are due. */
  queue(webhookId: number, count?: number): Promise<string[]>;
  /** Ports of an endpoint whose requests are answered by `send`, and the outcomes that it reported. */
  ports(
    send: (request: WebhookRequest) => Promise<SendResult>,
  ): DeliverPorts & { readonly outcomes: string[] };
}

export async function startDeliveryDatabase(t: TestContext): Promise<DeliveryDatabase> {
  const { url } = await createDatabase(t);
  const sql = openSql(url, { maxConnections: 10, name: 'test deliveries' });
  t.after(() => sql.end());
  await ensureWeeks(sql, DELIVERIES, [weekStartMs(Date.now()), weekStartMs(Date.now() + 86_400_000)]);
  const account = async (email: string): Promise<number> => {
    const { id } = await sql.begin(async (tx) => {
      await lockForNewTenants(tx);
      const draft = { email, name: 'A', organizationId: null, plan: 'pro', passwordHash: null };
      return insertAccount(tx, draft);
    });
    return id;
  };
  const accountId = await account('a@x');
  const nets = parseCidrs('');
  invariant(nets.ok, 'no networks are valid networks');
  return {
    url,
    sql,
    accountId,
    account,
    endpoint: async (draft = {}, ownerId = accountId) => {
      const complete: EndpointDraft = {
        url: 'https://hooks.example.com/',
        description: null,
        events: ['*'],
        retry_policy: 'exponential',
        max_retries: 5,
        active: true,
        ...draft,
      };
      const sealed = seal(KEY, newSecret());
      const made = await sql.begin((tx) => insertWebhook(tx, ownerId, complete, sealed, ENDPOINTS_MAX));
      invariant(made, 'fewer than the limit');
      return made.id;
    },
    queue: async (webhookId, count = 1) => {
      const drafts = Array.from({ length: count }, () => ({
        webhookId,
        eventId: newEventId(),
        eventType: 'rfid' as const,
        body: JSON.stringify({ x: randomBytes(4).toString('hex') }),
      }));
      const made = await sql.begin((tx) => insertDeliveries(tx, drafts, 'new_events'));
      return made.map(({ id }) => id);
    },
    ports: (send) => {
      const outcomes: string[] = [];
      return {
        sql,
        claim: claimInBatches((claims) => claimDeliveries(sql, claims)),
        clock: Date.now,
        secretsKey: KEY,
        allowNets: nets.value,
        minuteMs: 60_000,
        traces: null,
        send,
        onAttempt: (outcome) => void outcomes.push(outcome),
        hasSlot: () => true,
        isStopping: () => false,
        outcomes,
      };
    },
  };
}

/** How long a lease lasts. */
export const LEASE_SECONDS = 30;

/** Asks for the lease of an endpoint. */
export const leaseOf = (webhookId: number): Claim => ({
  webhookId,
  lease: null,
  ended: null,
  mayStart: true,
});

/** Claims one endpoint, whose rows nobody has locked. */
export async function claimEndpoint(sql: Sql, webhookId: number): Promise<Claimed | undefined> {
  const [claimed] = await claimDeliveries(sql, [leaseOf(webhookId)]);
  return claimed === 'busy' ? undefined : claimed;
}

export const ANSWERED: SendResult = { kind: 'answered', statusCode: 200, answer: '', durationMs: 1 };
