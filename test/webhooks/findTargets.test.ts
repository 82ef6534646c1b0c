import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CidrSet, parseCidrs } from '../../src/access/ipAddress.ts';
import { ReceiverConnections } from '../../src/webhooks/delivery/receiverConnections.ts';
import type { Resolve } from '../../src/webhooks/delivery/sendWebhook.ts';
import { findTargets, sendWebhook } from '../../src/webhooks/delivery/sendWebhook.ts';
import { validateWebhookUrl } from '../../src/webhooks/delivery/urlSafety.ts';
import { ALLOWED_NETS, ALLOWED_URL_ROWS, URL_ROWS, type UrlRow } from '../support/webhooks/webhookUrls.ts';

const NOBODY = new CidrSet([]);

/** What would become of a delivery to the row's URL; nothing is sent where it would go out. */
async function verdict(row: UrlRow, allowNets: CidrSet): Promise<UrlRow['delivery']> {
  const resolve: Resolve = async () => ({ kind: 'addresses', addresses: row.answers ?? assert.fail() });
  const validated = validateWebhookUrl(row.url, allowNets);
  const targets = validated.ok
    ? await findTargets(new URL(validated.value).hostname, allowNets, resolve, new AbortController().signal)
    : ({ kind: 'unsafe' } as const);
  if (targets.kind === 'addresses') return 'sent';
  const owner = { webhookId: 1, accountId: 1, revision: '' };
  const request = { url: row.url, headers: {}, body: '', owner, allowNets, resolve };
  const { kind } = await sendWebhook(new ReceiverConnections(), request);
  assert.equal(kind, targets.kind);
  return targets.kind;
}

const label = ({ url, answers }: UrlRow) =>
  `${JSON.stringify(url.slice(0, 80))}${answers ? ` that resolves to ${answers.join(', ') || 'nothing'}` : ''}`;

describe('a delivery to', () => {
  for (const row of URL_ROWS) {
    test(`${label(row)} is ${row.delivery}`, async () => {
      assert.equal(await verdict(row, NOBODY), row.delivery);
    });
  }
});

describe('with exempt networks a delivery to', () => {
  const allowed = parseCidrs(ALLOWED_NETS);
  assert.ok(allowed.ok);
  for (const row of ALLOWED_URL_ROWS) {
    test(`${label(row)} is ${row.delivery}`, async () => {
      assert.equal(await verdict(row, allowed.value), row.delivery);
    });
  }
});
