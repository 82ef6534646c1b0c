import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { connectRedis, whenReady } from '../../src/redis/redisConnection.ts';
import { patienceMs } from '../support/patience.ts';
import { findFreePort } from '../support/ports.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { receiverCertificate } from '../support/webhooks/tlsReceiver.ts';
import { eventually, SILENT } from './pod.ts';

test('a Redis with a certificate of an own authority is reached, and proves who it is', {
  skip: skipWithoutRedis(),
}, async (t) => {
  const server = await startRedis(t);
  const admin = new Redis(server.url);
  const knowsTls = ((await admin.config('GET', 'tls-port')) as string[]).length > 0;
  if (!knowsTls) {
    admin.disconnect();
    return t.skip('this redis-server has no TLS');
  }
  const folder = await mkdtemp(join(tmpdir(), 'fleet-tls-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const own = await receiverCertificate();
  const other = await receiverCertificate();
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const cert = await file('cert.pem', own.certificatePem);
  const key = await file('key.pem', own.privateKeyPem);
  const foreign = await file('other.pem', other.certificatePem);
  const port = await findFreePort();
  // By default Redis asks clients for a certificate as well.
  const settings = ['tls-cert-file', cert, 'tls-key-file', key, 'tls-ca-cert-file', cert, 'tls-port', port];
  await admin.call('CONFIG', 'SET', ...settings);
  admin.disconnect();

  const at = (ca: string) => `rediss://127.0.0.1:${port}/0?cacert=${ca}&cert=${cert}&key=${key}`;
  const redis = connectRedis(at(cert), SILENT);
  t.after(() => redis.disconnect());
  assert.equal(await whenReady(redis, patienceMs(10_000)), true);
  assert.equal(await redis.set('a', '1'), 'OK');

  const reasons: string[] = [];
  const deceived = connectRedis(at(foreign), {
    ...SILENT,
    warn: (fields) => reasons.push(JSON.stringify(fields)),
  });
  t.after(() => deceived.disconnect());
  await eventually('the certificate is refused', () => reasons.length > 0);
  assert.match(reasons.join(), /self.signed certificate/);
});
