import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CidrSet, parseCidrs } from '../../src/access/ipAddress.ts';
import { urlErrorMessage, validateWebhookUrl } from '../../src/webhooks/delivery/urlSafety.ts';
import { runs } from '../support/torture.ts';
import { ALLOWED_NETS, ALLOWED_URL_ROWS, URL_ROWS, type UrlRow } from '../support/webhooks/webhookUrls.ts';

const SEED = 20_260_301;
const NOBODY = new CidrSet([]);

function check(row: UrlRow, allowNets: CidrSet): void {
  const validated = validateWebhookUrl(row.url, allowNets);
  const verdict = validated.ok ? validated.value : { rejected: validated.error };
  assert.deepEqual(verdict, row.stored);
  if (validated.ok) assert.deepEqual(validateWebhookUrl(validated.value, allowNets), validated);
}

const label = ({ url }: UrlRow) => JSON.stringify(url.length > 80 ? `${url.slice(0, 80)}…` : url);

describe('judgeWebhookUrl', () => {
  test('there are at least 80 rows, all of one kind or the other', () => {
    assert.ok(URL_ROWS.length >= 80);
  });

  for (const row of URL_ROWS) {
    const rejected = typeof row.stored === 'object';
    if (row.answers && row.url === 'https://hook.example.com/in') continue;
    test(`${label(row)} is ${rejected ? 'refused' : 'taken'}`, () => check(row, NOBODY));
  }

  const allowed = parseCidrs(ALLOWED_NETS);
  assert.ok(allowed.ok);
  for (const row of ALLOWED_URL_ROWS) {
    const rejected = typeof row.stored === 'object';
    test(`with exempt networks ${label(row)} is ${rejected ? 'refused' : 'taken'}`, () =>
      check(row, allowed.value));
  }

  test('whatever is taken parses to https, a host without user info, and itself when checked again', () => {
    fc.assert(
      fc.property(fc.oneof(fc.webUrl(), fc.string(), fc.string({ unit: 'grapheme' })), (text) => {
        for (const url of [text, `https://${text}`]) {
          const validated = validateWebhookUrl(url, NOBODY);
          if (!validated.ok) {
            assert.ok(urlErrorMessage(validated.error).startsWith('url must'));
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
      { seed: SEED, numRuns: runs(500) },
    );
  });
});
