import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { describe, test } from 'node:test';
import { selfSignedCertificate } from '../../src/cli/selfSignedCertificate.ts';

const FROM_MS = Date.UTC(2026, 2, 1, 12, 30, 45);
const TO_MS = Date.UTC(2051, 0, 2, 3, 4, 5);

describe('a self-signed certificate', () => {
  const names = ['localhost', 'hook.example.com', '127.0.0.1', '2001:db8::5'];
  const { certificatePem, privateKeyPem } = selfSignedCertificate(names, FROM_MS, TO_MS);
  const certificate = new X509Certificate(certificatePem);

  test('is signed with the key that comes with it', () => {
    assert.ok(certificate.verify(certificate.publicKey));
    assert.ok(certificate.checkPrivateKey(createPrivateKey(privateKeyPem)));
    assert.ok(certificate.checkIssued(certificate));
  });

  test('is valid for its names and addresses and for no others', () => {
    assert.equal(certificate.subject, 'CN=localhost');
    for (const name of ['localhost', 'hook.example.com']) assert.equal(certificate.checkHost(name), name);
    for (const name of ['example.com', 'a.localhost']) assert.equal(certificate.checkHost(name), undefined);
    for (const ip of ['127.0.0.1', '2001:db8::5']) assert.equal(certificate.checkIP(ip), ip);
    assert.equal(certificate.checkIP('127.0.0.2'), undefined);
  });

  test('is valid in its time, before 2050 and after', () => {
    assert.equal(certificate.validFromDate.getTime(), FROM_MS);
    assert.equal(certificate.validToDate.getTime(), TO_MS);
  });

  test('may sign no other certificate', () => {
    assert.equal(certificate.ca, false);
  });

  test('is another each time, with a positive serial number', () => {
    const serials = Array.from({ length: 20 }, () => {
      const made = selfSignedCertificate(['localhost'], FROM_MS, TO_MS).certificatePem;
      return new X509Certificate(made).serialNumber;
    });
    assert.equal(new Set(serials).size, serials.length);
    for (const serial of serials) assert.match(serial, /^[4-7][0-9A-F]{31}$/);
  });

  test('is small enough for every length that DER has', () => {
    for (const count of [1, 5, 12, 40, 200]) {
      const many = Array.from({ length: count }, (_, i) => `host-${i}.example.com`);
      const made = new X509Certificate(selfSignedCertificate(many, FROM_MS, TO_MS).certificatePem);
      assert.equal(made.checkHost(`host-${count - 1}.example.com`), `host-${count - 1}.example.com`);
    }
  });
});
