import type { UrlError } from '../../../src/webhooks/delivery/urlSafety.ts';

/** A webhook URL with what becomes of it when no address is exempt. */
export interface UrlRow {
  readonly url: string;
  /** As it is stored, or why it is refused at creation and update. */
  readonly stored: string | { readonly rejected: UrlError };
  /** What DNS answers at delivery; without it the host needs no DNS. */
  readonly answers?: readonly string[];
  readonly delivery: 'sent' | 'unsafe' | 'failed';
}

const LONGEST = `https://example.com/${'p'.repeat(2048 - 20)}`;

const rejected = (error: UrlError, ...urls: string[]): UrlRow[] =>
  urls.map((url) => ({ url, stored: { rejected: error }, delivery: 'unsafe' }));

const words = (text: string): string[] => text.trim().split(/\s+/);
const urlsOf = (hosts: string): string[] => words(hosts).map((host) => `https://${host}/`);

/** A name that may be stored, with the answers that decide at delivery: one row for each word, its answers joined by commas. */
const named = (delivery: UrlRow['delivery'], answers: string): UrlRow[] =>
  words(answers).map((each) => ({
    url: 'https://hook.example.com/in',
    stored: 'https://hook.example.com/in',
    answers: each.split(','),
    delivery,
  }));

const PUBLIC = '93.184.215.14';
const stored = (url: string, as = url): UrlRow => ({ url, stored: as, answers: [PUBLIC], delivery: 'sent' });
const literal = (url: string, as = url): UrlRow => ({ url, stored: as, delivery: 'sent' });

export const URL_ROWS: readonly UrlRow[] = [
  // Names, and what is left of them.
  stored('https://example.com'),
  stored('https://example.com/a/b?c=d&e=%20#f'),
  stored('https://EXAMPLE.com/Path', 'https://example.com/Path'),
  stored('HTTPS://example.com/', 'https://example.com/'),
  stored('https://example.com./in', 'https://example.com/in'),
  stored('https://example.com:8443/in'),
  stored('https://example.com:443/in', 'https://example.com/in'),
  stored('https://bücher.example/in', 'https://xn--bcher-kva.example/in'),
  ...urlsOf('example.com my_host.example.com localhost.example.com notlocal.example').map((url) =>
    stored(url),
  ),
  stored('https://internal.example.com/@x'),
  stored(LONGEST),
  ...rejected('too_long', `${LONGEST}p`, `https://example.com/${'\u{1f600}'.repeat(2030)}`),

  // Not an https URL of a host at all.
  ...rejected('not_a_url', '', 'example.com', '//example.com/', 'https://', 'https://exa mple.com/'),
  ...rejected(
    'not_a_url',
    ...urlsOf('example.com:65536 %zz.com [::1 1.2.3.4.5 256.1.1.1 [fe80::1%25eth0] ?x'),
  ),
  ...rejected('not_https', 'http://example.com/', 'ftp://example.com/', 'file:///etc/passwd'),
  ...rejected(
    'not_https',
    'javascript:alert(1)',
    'https:example.com',
    'https:/example.com',
    'https:///x.com/',
  ),
  ...rejected(
    'user_info',
    ...urlsOf('u@example.com u:p@example.com :@example.com @example.com a.com@127.0.0.1'),
  ),
  ...rejected('port_zero', ...urlsOf('example.com:0 example.com:00')),
  ...rejected('blank_or_control', ' https://example.com/', 'https://example.com/ ', 'https://example.com/\n'),
  ...rejected(
    'blank_or_control',
    'https://exam\tple.com/',
    'https://example.com/\0',
    'https://a.com/\u0085x',
  ),
  ...rejected('blank_or_control', 'https:\\\\example.com\\', 'https://example.com\\@127.0.0.1/'),
  ...rejected('blank_or_control', '\ufeffhttps://example.com/', 'https://example.com/\ud800'),

  // Names that are not public.
  ...rejected(
    'host_not_public',
    ...urlsOf(`localhost LOCALHOST. a.localhost ｌｏｃａｌｈｏｓｔ loc%61lhost db printer.local
      metadata.google.internal a.b.Internal. a..example.com example.com.. .example.com -a.example.com a$b.com
      ${'a'.repeat(64)}.example.com`),
  ),

  // IPv4 literals in every spelling.
  literal('https://8.8.8.8/'),
  literal('https://134744072/', 'https://8.8.8.8/'),
  literal('https://9.9.9.9.:8443/x', 'https://9.9.9.9:8443/x'),
  ...urlsOf(`172.15.255.255 172.32.0.0 100.63.255.255 100.128.0.0 11.0.0.0 126.255.255.255 128.0.0.0
    169.253.255.255 192.167.255.255 198.17.255.255 198.20.0.0 223.255.255.255`).map((url) => literal(url)),
  ...rejected(
    'address_not_public',
    ...urlsOf(`127.0.0.1 127.1 2130706433 0x7f000001 017700000001 0177.0.0.1 0x7f.1 127.0.0.1. １２７.０.０.１
      127。0。0。1 %31%32%37.0.0.1 0 0.0.0.0 10.1.2.3 100.64.0.1 100.127.255.255 169.254.169.254 0xa9fea9fe
      172.16.0.1 172.31.255.255 192.168.1.1 192.0.0.8 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255
      198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255`),
  ),

  // IPv6 literals.
  ...urlsOf('[2606:4700:4700::1111] [2001:200::1] [3ffe::1] [2003::1]').map((url) => literal(url)),
  literal('https://[2606:4700:4700:0:0:0:0:1111]:8443/', 'https://[2606:4700:4700::1111]:8443/'),
  ...rejected(
    'address_not_public',
    ...urlsOf(`[::] [::1] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:8.8.8.8] [::127.0.0.1]
      [::8.8.8.8] [64:ff9b::10.0.0.1] [64:ff9b::8.8.8.8] [64:ff9b:1::8.8.8.8] [100::1] [2001::1]
      [2001:0:4136:e378:8000:63bf:3fff:fdd2] [2001:20::1] [2001:1ff:ffff::1] [2001:db8::1] [2002:7f00:1::]
      [2002:808:808::1] [3fff:fff::1] [4000::1] [5f00::1] [fc00::1] [fd00:ec2::254] [fe80::1] [fec0::1]
      [ff02::1] [2620:4f:8000::1]`),
  ),

  // Public names whose answers decide.
  ...named('sent', `${PUBLIC} 2606:4700:4700::1111 ${PUBLIC},2606:4700:4700::1111`),
  ...named('sent', `64:ff9b::8.8.8.8 64:ff9b::5db8:d70e,${PUBLIC}`),
  ...named(
    'unsafe',
    `127.0.0.1 10.0.0.1 169.254.169.254 100.64.1.1 0.0.0.0 224.0.0.1 192.168.0.1 ::1 :: fe80::1 fd00::1
      ::ffff:10.0.0.1 ::ffff:8.8.8.8 ::8.8.8.8 64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::808:808
      2002:808:808::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:db8::1 ${PUBLIC},10.0.0.1 ${PUBLIC},::1
      8.8.8.8,8.8.4.4,127.0.0.1 nonsense`,
  ),
  { ...stored('https://hook.example.com/in'), answers: [], delivery: 'failed' },
  { ...stored('https://127.0.0.1.nip.io/'), answers: ['127.0.0.1'], delivery: 'unsafe' },
];

/** WEBHOOK_ALLOW_NETS of the rows below. */
export const ALLOWED_NETS = '127.0.0.0/8,10.1.0.0/16,fd00::/8';

/** What becomes of URLs while ALLOWED_NETS are exempt. */
export const ALLOWED_URL_ROWS: readonly UrlRow[] = [
  ...urlsOf('127.0.0.1:8443 10.1.2.3 [fd00::5] localhost:8443 hook.localhost').map((url) => literal(url)),
  literal('https://0x7f.1/', 'https://127.0.0.1/'),
  literal('https://[::ffff:10.1.2.3]/', 'https://[::ffff:a01:203]/'),
  ...urlsOf('receiver receiver.local receiver.internal hook.example.com').flatMap((url): UrlRow[] => [
    { url, stored: url, answers: ['10.1.0.9'], delivery: 'sent' },
    { url, stored: url, answers: ['10.1.0.9', '8.8.8.8', 'fd00::9'], delivery: 'sent' },
    { url, stored: url, answers: ['64:ff9b::a01:9'], delivery: 'sent' },
    { url, stored: url, answers: ['10.2.0.9'], delivery: 'unsafe' },
    { url, stored: url, answers: ['10.1.0.9', '::1'], delivery: 'unsafe' },
  ]),
  ...rejected('address_not_public', ...urlsOf('10.2.0.1 [::1] [::ffff:10.2.0.1] 0.0.0.0')),
  ...rejected('not_https', 'http://127.0.0.1/'),
  ...rejected('user_info', 'https://u@localhost/'),
];
