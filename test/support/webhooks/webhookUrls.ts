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

/** A name that may be stored, with the answers that decide at delivery. */
const named = (delivery: UrlRow['delivery'], ...answers: string[][]): UrlRow[] =>
  answers.map((each) => ({
    url: 'https://hook.example.com/in',
    stored: 'https://hook.example.com/in',
    answers: each,
    delivery,
  }));

const PUBLIC = ['93.184.215.14'];
const stored = (url: string, as: string): UrlRow => ({ url, stored: as, answers: PUBLIC, delivery: 'sent' });
const literal = (url: string, as: string): UrlRow => ({ url, stored: as, delivery: 'sent' });

export const URL_ROWS: readonly UrlRow[] = [
  // Names, and what is left of them.
  stored('https://example.com', 'https://example.com'),
  stored('https://example.com/', 'https://example.com/'),
  stored('https://example.com/a/b?c=d&e=%20#f', 'https://example.com/a/b?c=d&e=%20#f'),
  stored('https://EXAMPLE.com/Path', 'https://example.com/Path'),
  stored('HTTPS://example.com/', 'https://example.com/'),
  stored('https://example.com./in', 'https://example.com/in'),
  stored('https://example.com:8443/in', 'https://example.com:8443/in'),
  stored('https://example.com:443/in', 'https://example.com/in'),
  stored('https://bücher.example/in', 'https://xn--bcher-kva.example/in'),
  stored('https://my_host.example.com/', 'https://my_host.example.com/'),
  stored('https://localhost.example.com/', 'https://localhost.example.com/'),
  stored('https://notlocal.example', 'https://notlocal.example'),
  stored('https://internal.example.com/@x', 'https://internal.example.com/@x'),
  stored(LONGEST, LONGEST),
  ...rejected('too_long', `${LONGEST}p`, `https://example.com/${'\u{1f600}'.repeat(2030)}`),

  // Not an https URL of a host at all.
  ...rejected('not_a_url', '', 'example.com', '//example.com/', 'https://', 'https://exa mple.com/'),
  ...rejected(
    'not_a_url',
    'https://example.com:65536/',
    'https://%zz.com/',
    'https://[::1',
    'https://1.2.3.4.5/',
  ),
  ...rejected('not_a_url', 'https://256.1.1.1/', 'https://[fe80::1%25eth0]/', 'https://?x'),
  ...rejected(
    'not_https',
    'http://example.com/',
    'ftp://example.com/',
    'file:///etc/passwd',
    'javascript:alert(1)',
  ),
  ...rejected('not_https', 'https:example.com', 'https:/example.com', 'https:///example.com/'),
  ...rejected('user_info', 'https://u@example.com/', 'https://u:p@example.com/', 'https://:@example.com/'),
  ...rejected('user_info', 'https://@example.com/', 'https://example.com@127.0.0.1/'),
  ...rejected('port_zero', 'https://example.com:0/', 'https://example.com:00/'),
  ...rejected('blank_or_control', ' https://example.com/', 'https://example.com/ ', 'https://example.com/\n'),
  ...rejected(
    'blank_or_control',
    'https://exam\tple.com/',
    'https://example.com/\u0000',
    'https://example.com/\u0085x',
  ),
  ...rejected(
    'blank_or_control',
    'https:\\\\example.com\\',
    'https://example.com\\@127.0.0.1/',
    '\ufeffhttps://example.com/',
  ),
  ...rejected('blank_or_control', 'https://example.com/\ud800'),

  // Names that are not public.
  ...rejected('host_not_public', 'https://localhost/', 'https://LOCALHOST./', 'https://a.localhost/'),
  ...rejected(
    'host_not_public',
    'https://printer.local/',
    'https://metadata.google.internal/',
    'https://db/',
  ),
  ...rejected(
    'host_not_public',
    'https://a.b.Internal./x',
    'https://ｌｏｃａｌｈｏｓｔ/',
    'https://loc%61lhost/',
  ),
  ...rejected(
    'host_not_public',
    'https://a..example.com/',
    'https://example.com../',
    'https://.example.com/',
  ),
  ...rejected(
    'host_not_public',
    `https://${'a'.repeat(64)}.example.com/`,
    'https://-a.example.com/',
    'https://a$b.com/',
  ),

  // IPv4 literals in every spelling.
  literal('https://8.8.8.8/', 'https://8.8.8.8/'),
  literal('https://134744072/', 'https://8.8.8.8/'),
  literal('https://9.9.9.9.:8443/x', 'https://9.9.9.9:8443/x'),
  ...rejected(
    'address_not_public',
    'https://127.0.0.1/',
    'https://127.1/',
    'https://2130706433/',
    'https://0x7f000001/',
  ),
  ...rejected(
    'address_not_public',
    'https://017700000001/',
    'https://0177.0.0.1/',
    'https://0x7f.1/',
    'https://127.0.0.1./',
  ),
  ...rejected(
    'address_not_public',
    'https://１２７.０.０.１/',
    'https://127。0。0。1/',
    'https://%31%32%37.0.0.1/',
  ),
  ...rejected(
    'address_not_public',
    'https://0/',
    'https://0.0.0.0/',
    'https://10.1.2.3/',
    'https://100.64.0.1/',
  ),
  ...rejected('address_not_public', 'https://100.127.255.255/', 'https://169.254.169.254/latest/meta-data/'),
  ...rejected('address_not_public', 'https://0xa9fea9fe/', 'https://172.16.0.1/', 'https://172.31.255.255/'),
  ...rejected('address_not_public', 'https://192.168.1.1/', 'https://192.0.0.8/', 'https://192.0.2.1/'),
  ...rejected('address_not_public', 'https://192.88.99.1/', 'https://198.18.0.1/', 'https://198.19.255.255/'),
  ...rejected('address_not_public', 'https://198.51.100.7/', 'https://203.0.113.9/', 'https://224.0.0.1/'),
  ...rejected(
    'address_not_public',
    'https://239.255.255.250/',
    'https://240.0.0.1/',
    'https://255.255.255.255/',
  ),
  ...['172.15.255.255', '172.32.0.0', '100.63.255.255', '100.128.0.0', '11.0.0.0', '126.255.255.255'].map(
    (ip) => literal(`https://${ip}/`, `https://${ip}/`),
  ),
  ...[
    '128.0.0.0',
    '169.253.255.255',
    '192.167.255.255',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
  ].map((ip) => literal(`https://${ip}/`, `https://${ip}/`)),

  // IPv6 literals.
  literal('https://[2606:4700:4700::1111]/', 'https://[2606:4700:4700::1111]/'),
  literal('https://[2606:4700:4700:0:0:0:0:1111]:8443/', 'https://[2606:4700:4700::1111]:8443/'),
  literal('https://[2001:200::1]/', 'https://[2001:200::1]/'),
  literal('https://[3ffe::1]/', 'https://[3ffe::1]/'),
  literal('https://[2003::1]/', 'https://[2003::1]/'),
  ...rejected('address_not_public', 'https://[::]/', 'https://[::1]/', 'https://[0:0:0:0:0:0:0:1]/'),
  ...rejected(
    'address_not_public',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https://[::ffff:8.8.8.8]/',
  ),
  ...rejected(
    'address_not_public',
    'https://[::127.0.0.1]/',
    'https://[::8.8.8.8]/',
    'https://[64:ff9b::10.0.0.1]/',
  ),
  ...rejected(
    'address_not_public',
    'https://[64:ff9b::8.8.8.8]/',
    'https://[64:ff9b:1::8.8.8.8]/',
    'https://[100::1]/',
  ),
  ...rejected('address_not_public', 'https://[2001::1]/', 'https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/'),
  ...rejected(
    'address_not_public',
    'https://[2001:20::1]/',
    'https://[2001:1ff:ffff::1]/',
    'https://[2001:db8::1]/',
  ),
  ...rejected(
    'address_not_public',
    'https://[2002:7f00:1::]/',
    'https://[2002:808:808::1]/',
    'https://[3fff:fff::1]/',
  ),
  ...rejected(
    'address_not_public',
    'https://[4000::1]/',
    'https://[5f00::1]/',
    'https://[fc00::1]/',
    'https://[fd00:ec2::254]/',
  ),
  ...rejected(
    'address_not_public',
    'https://[fe80::1]/',
    'https://[fec0::1]/',
    'https://[ff02::1]/',
    'https://[2620:4f:8000::1]/',
  ),

  // Public names whose answers decide.
  ...named('sent', PUBLIC, ['2606:4700:4700::1111'], [...PUBLIC, '2606:4700:4700::1111']),
  ...named('sent', ['64:ff9b::8.8.8.8'], ['64:ff9b::5db8:d70e', ...PUBLIC]),
  ...named(
    'unsafe',
    ['127.0.0.1'],
    ['10.0.0.1'],
    ['169.254.169.254'],
    ['100.64.1.1'],
    ['0.0.0.0'],
    ['::1'],
    ['::'],
  ),
  ...named('unsafe', ['fe80::1'], ['fd00::1'], ['::ffff:10.0.0.1'], ['::ffff:8.8.8.8'], ['::8.8.8.8']),
  ...named(
    'unsafe',
    ['64:ff9b::127.0.0.1'],
    ['64:ff9b::a9fe:a9fe'],
    ['64:ff9b:1::808:808'],
    ['2002:808:808::1'],
  ),
  ...named(
    'unsafe',
    ['2001:0:4136:e378:8000:63bf:3fff:fdd2'],
    ['2001:db8::1'],
    ['224.0.0.1'],
    ['192.168.0.1'],
  ),
  ...named(
    'unsafe',
    [...PUBLIC, '10.0.0.1'],
    [...PUBLIC, '::1'],
    ['8.8.8.8', '8.8.4.4', '127.0.0.1'],
    ['not an address'],
  ),
  ...named('failed', []),
  {
    url: 'https://127.0.0.1.nip.io/',
    stored: 'https://127.0.0.1.nip.io/',
    answers: ['127.0.0.1'],
    delivery: 'unsafe',
  },
];

/** WEBHOOK_ALLOW_NETS of the rows below. */
export const ALLOWED_NETS = '127.0.0.0/8,10.1.0.0/16,fd00::/8';

/** What becomes of URLs while ALLOWED_NETS are exempt. */
export const ALLOWED_URL_ROWS: readonly UrlRow[] = [
  literal('https://127.0.0.1:8443/in', 'https://127.0.0.1:8443/in'),
  literal('https://0x7f.1/', 'https://127.0.0.1/'),
  literal('https://10.1.2.3/', 'https://10.1.2.3/'),
  literal('https://[::ffff:10.1.2.3]/', 'https://[::ffff:a01:203]/'),
  literal('https://[fd00::5]/', 'https://[fd00::5]/'),
  literal('https://localhost:8443/', 'https://localhost:8443/'),
  literal('https://hook.localhost/', 'https://hook.localhost/'),
  ...[
    'https://receiver/',
    'https://receiver.local/',
    'https://receiver.internal/',
    'https://hook.example.com/',
  ].flatMap((url): UrlRow[] => [
    { url, stored: url, answers: ['10.1.0.9'], delivery: 'sent' },
    { url, stored: url, answers: ['10.1.0.9', '8.8.8.8', 'fd00::9'], delivery: 'sent' },
    { url, stored: url, answers: ['64:ff9b::a01:9'], delivery: 'sent' },
    { url, stored: url, answers: ['10.2.0.9'], delivery: 'unsafe' },
    { url, stored: url, answers: ['10.1.0.9', '::1'], delivery: 'unsafe' },
  ]),
  ...rejected(
    'address_not_public',
    'https://10.2.0.1/',
    'https://[::1]/',
    'https://[::ffff:10.2.0.1]/',
    'https://0.0.0.0/',
  ),
  ...rejected('not_https', 'http://127.0.0.1/'),
  ...rejected('user_info', 'https://u@localhost/'),
];
