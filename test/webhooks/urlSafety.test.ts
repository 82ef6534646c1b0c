import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CidrSet, parseCidrs } from '../../src/access/ipAddress.ts';
import { ReceiverConnections } from '../../src/webhooks/delivery/receiverConnections.ts';
import { findTargets, type Resolve, sendWebhook } from '../../src/webhooks/delivery/sendWebhook.ts';
import { URL_ERROR_MESSAGES, validateWebhookUrl } from '../../src/webhooks/delivery/urlSafety.ts';
import { anyCharacter } from '../support/http/anyCharacter.ts';
import { runs } from '../support/torture.ts';
import { ALLOWED_NETS, ALLOWED_URL_ROWS, URL_ROWS, type UrlRow } from '../support/webhooks/webhookUrls.ts';

const NOBODY = new CidrSet([]);
const allowed = parseCidrs(ALLOWED_NETS);
assert.ok(allowed.ok);

/** At creation, and once more when it is stored. */
function checkStored({ url, stored }: UrlRow, allowNets: CidrSet): void {
  const validated = validateWebhookUrl(url, allowNets);
  assert.deepEqual(validated.ok ? validated.value : { rejected: validated.error }, stored);
  if (validated.ok) assert.deepEqual(validateWebhookUrl(validated.value, allowNets), validated);
}

/** What would become of a delivery to the row's URL; nothing is sent where it would go out. */
async function deliveryTo({ url, answers }: UrlRow, allowNets: CidrSet): Promise<UrlRow['delivery']> {
  const resolve: Resolve = async () => ({ kind: 'addresses', addresses: answers ?? assert.fail() });
  const validated = validateWebhookUrl(url, allowNets);
  const targets = validated.ok
    ? await findTargets(new URL(validated.value).hostname, allowNets, resolve, new AbortController().signal)
    : ({ kind: 'unsafe' } as const);
  if (targets.kind === 'addresses') return 'sent';
  const owner = { webhookId: 1, accountId: 1, revision: '' };
  const request = { url, headers: {}, body: '', owner, allowNets, resolve };
  const { kind } = await sendWebhook(new ReceiverConnections(), request);
  assert.equal(kind, targets.kind);
  return targets.kind;
}

for (const [nets, rows, allowNets] of [
  ['no exempt networks', URL_ROWS, NOBODY],
  ['exempt networks', ALLOWED_URL_ROWS, allowed.value],
] as const) {
  describe(`with ${nets}`, () => {
    for (const row of rows) {
      const answers = row.answers ? ` that resolves to ${row.answers.join(', ') || 'nothing'}` : '';
      test(`${JSON.stringify(row.url.slice(0, 80))}${answers}`, async () => {
        checkStored(row, allowNets);
        assert.equal(await deliveryTo(row, allowNets), row.delivery);
      });
    }
  });
}

test('whatever is taken parses to https, a host without user info, and itself when checked again', () => {
  fc.assert(
    fc.property(fc.oneof(fc.webUrl(), fc.string(), fc.string({ unit: anyCharacter })), (text) => {
      for (const url of [text, `https://${text}`]) {
        const validated = validateWebhookUrl(url, NOBODY);
        if (!validated.ok) {
          assert.ok(URL_ERROR_MESSAGES[validated.error].startsWith('url must'));
          continue;
        }
        const parsed = new URL(validated.value);
        assert.equal(parsed.protocol, 'https:');
        assert.equal(parsed.username + parsed.password, '');
        assert.match(parsed.hostname, /\.|^\[/);
        assert.equal(parsed.href, new URL(new URL(url).href.replace(/\.(:\d+)?\//, '$1/')).href);
        assert.deepEqual(validateWebhookUrl(validated.value, NOBODY), validated);
      }
    }),
    { seed: 20_260_301, numRuns: runs(200) },
  );
});
