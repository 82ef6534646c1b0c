import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { SCOPES } from '../../src/access/scopes.ts';
import { parseKeyChange, parseKeyCreate } from '../../src/tenants/keyBody.ts';
import { runs } from '../support/torture.ts';

const reported = (parsed: ReturnType<typeof parseKeyChange>): string[] =>
  parsed.ok ? ['ok'] : parsed.error.map(({ field, code }) => `${field} ${code}`);

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
const created = (body: unknown) => parseKeyCreate(body, NOW_MS);

const FINE = { name: 'Depot screen', scopes: ['read_areas', 'read_devices'], allowlist: ['192.0.2.1'] };
const entries = (count: number) => Array.from({ length: count }, (_, n) => `10.0.${n}.0/24`);

describe('the body of a key', () => {
  test('gives name, scopes and allowlist, and nothing else', () => {
    const body = { ...FINE, name: '  Depot screen ', id: 9, key: 'fk_x', revoked_at: null, account_id: 1 };
    assert.deepEqual(created(body), {
      ok: true,
      value: {
        ...{ name: 'Depot screen', scopes: ['read_devices', 'read_areas'], allowlist: ['192.0.2.1'] },
        expiresAt: null,
        groups: [],
      },
    });
    const ending = created({ ...FINE, expires_at: '2026-03-01T14:00:00.001+02:00' });
    assert.deepEqual(ending.ok && ending.value.expiresAt, new Date(NOW_MS + 1));
    assert.deepEqual(parseKeyChange({ scopes: ['read_areas', 'read_areas'] }), {
      ok: true,
      value: { scopes: ['read_areas'] },
    });
  });

  /** A value of a field, the error at creation, and the error at a change where it differs. */
  const FIELDS: [field: string, value: unknown, create: string, change?: string][] = [
    ['name', undefined, 'name REQUIRED', 'ok'],
    ['name', null, 'name REQUIRED', 'ok'],
    ['name', '', 'name REQUIRED'],
    ['name', ' \u00a0\n ', 'name REQUIRED'],
    ['name', 7, 'name REQUIRED'],
    ['name', ['x'], 'name REQUIRED'],
    ['name', 'a\u0000b', 'name INVALID'],
    ['name', 'a\u0085b', 'name INVALID'],
    ['name', '\ud83d', 'name INVALID'],
    ['name', '🚚'.repeat(100), 'ok'],
    ['name', '🚚'.repeat(101), 'name TOO_LONG'],
    ['name', 'x'.repeat(1e6), 'name TOO_LONG'],
    ['scopes', undefined, 'scopes REQUIRED', 'ok'],
    ['scopes', null, 'scopes REQUIRED', 'ok'],
    ['scopes', [], 'scopes REQUIRED'],
    ['scopes', 'read_devices', 'scopes INVALID'],
    ['scopes', 'all', 'scopes INVALID'],
    ['scopes', ['all'], 'scopes INVALID'],
    ['scopes', ['read_devices', 'nope'], 'scopes INVALID'],
    ['scopes', ['Read_Devices'], 'scopes INVALID'],
    ['scopes', ['constructor'], 'scopes INVALID'],
    ['scopes', [7], 'scopes INVALID'],
    ['scopes', { 0: 'read_devices' }, 'scopes INVALID'],
    ['scopes', [...SCOPES, ...SCOPES], 'ok'],
    ['allowlist', undefined, 'ok'],
    ['allowlist', null, 'ok'],
    ['allowlist', [], 'ok'],
    ['allowlist', entries(50), 'ok'],
    ['allowlist', entries(51), 'allowlist TOO_LONG'],
    ['allowlist', ['192.0.2.0/24', '2001:db8::1'], 'ok'],
    ['allowlist', ['2001:db8::/32'], 'allowlist INVALID'],
    ['allowlist', ['192.0.2.0/33'], 'allowlist INVALID'],
    ['allowlist', ['::1/128'], 'allowlist INVALID'],
    ['allowlist', ['::ffff:10.0.0.0/104'], 'allowlist INVALID'],
    ['allowlist', ['192.0.2.256'], 'allowlist INVALID'],
    ['allowlist', ['010.0.0.1'], 'allowlist INVALID'],
    ['allowlist', [' 192.0.2.1'], 'allowlist INVALID'],
    ['allowlist', ['example.com'], 'allowlist INVALID'],
    ['allowlist', [''], 'allowlist INVALID'],
    ['allowlist', '192.0.2.1', 'allowlist INVALID'],
    ['allowlist', [1], 'allowlist INVALID'],
    ['allowlist', [null], 'allowlist INVALID'],
    ['allowlist', {}, 'allowlist INVALID'],
    // What ends a key is said when it is made; like any unknown field, a change passes over it.
    ['groups', null, 'ok'],
    ['groups', [], 'ok'],
    ['groups', Array.from({ length: 20 }, (_, n) => `g, ${n}`), 'ok'],
    ['groups', Array.from({ length: 21 }, (_, n) => `g ${n}`), 'groups TOO_LONG', 'ok'],
    ['groups', 'north', 'groups INVALID', 'ok'],
    ['groups', ['north', ' '], 'groups INVALID', 'ok'],
    ['groups', ['x'.repeat(101)], 'groups INVALID', 'ok'],
    ['groups', [7], 'groups INVALID', 'ok'],
    ['expires_at', undefined, 'ok'],
    ['expires_at', null, 'ok'],
    ['expires_at', '2026-03-01T12:00:00.001Z', 'ok'],
    ['expires_at', '9999-12-31', 'ok'],
    ['expires_at', '2026-03-01T12:00:00Z', 'expires_at INVALID', 'ok'],
    ['expires_at', '2026-02-28', 'expires_at INVALID', 'ok'],
    ['expires_at', 'tomorrow', 'expires_at INVALID', 'ok'],
    ['expires_at', '2026-02-30', 'expires_at INVALID', 'ok'],
    ['expires_at', '', 'expires_at INVALID', 'ok'],
    ['expires_at', NOW_MS + 1, 'expires_at INVALID', 'ok'],
    ['expires_at', ['2027-01-01'], 'expires_at INVALID', 'ok'],
  ];
  for (const [field, value, create, change = create] of FIELDS) {
    const shown = (JSON.stringify(value) ?? 'undefined').slice(0, 60);
    test(`with ${field} ${shown}: ${create}, changed: ${change}`, () => {
      assert.deepEqual(reported(created({ ...FINE, [field]: value })), [create]);
      assert.deepEqual(reported(parseKeyChange({ [field]: value })), [change]);
    });
  }

  for (const body of [undefined, null, [], 'x', 7, true]) {
    test(`of ${JSON.stringify(body)} is no object`, () => {
      assert.deepEqual(reported(created(body)), ['null INVALID_BODY']);
      assert.deepEqual(reported(parseKeyChange(body)), ['null INVALID_BODY']);
    });
  }

  test('lists every field that is wrong, each once, and names bad entries by their places', () => {
    const body = { name: ' ', scopes: ['x', 'y'], allowlist: ['192.0.2.1', 'x', '10.0.0.0/8', 'y'] };
    const expected = ['name REQUIRED', 'scopes INVALID', 'allowlist INVALID'];
    assert.deepEqual(reported(created(body)), expected);
    assert.deepEqual(reported(parseKeyChange(body)), expected);
    assert.deepEqual(reported(created({ ...body, expires_at: 'x' })), [...expected, 'expires_at INVALID']);
    const parsed = created(body);
    assert.match(parsed.ok ? '' : (parsed.error[2]?.message ?? ''), /entry 2, 4$/);
  });

  const scopes = fc.uniqueArray(fc.constantFrom(...SCOPES), { minLength: 1 });
  const octet = fc.integer({ min: 0, max: 255 });
  const ipv4 = fc.tuple(octet, octet, octet, octet).map((parts) => parts.join('.'));
  const block = fc.tuple(ipv4, fc.integer({ min: 0, max: 32 })).map(([ip, length]) => `${ip}/${length}`);
  const allowlist = fc.array(fc.oneof(ipv4, block, fc.ipV6()), { maxLength: 50 });
  const name = fc
    .string({ unit: fc.constantFrom(...'aZ0-_.é🚚 '), minLength: 1, maxLength: 100 })
    .filter((text) => text.trim() !== '');

  test('never throws, and takes nothing that its fields alone would not be taken with', () => {
    const anyName = fc.oneof(name, fc.anything());
    const anyScopes = fc.oneof(scopes, fc.array(fc.string()), fc.anything());
    const anyAllowlist = fc.oneof(allowlist, fc.array(fc.string(), { maxLength: 60 }), fc.anything());
    fc.assert(
      fc.property(anyName, anyScopes, anyAllowlist, (name, scopes, allowlist) => {
        const alone = [{ name }, { scopes }, { allowlist }].flatMap((field) =>
          reported(created({ ...FINE, ...field })).filter((line) => line !== 'ok'),
        );
        const together = reported(created({ name, scopes, allowlist }));
        assert.deepEqual(together, alone.length === 0 ? ['ok'] : alone);
      }),
      { numRuns: runs(125) },
    );
  });
});
