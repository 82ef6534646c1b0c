import type { Delivery } from '../types.ts';

/** What came of the attempts, for people. */
export function reasonOf({ attempts, last_status_code, last_error }: Delivery): string {
  const tries = attempts === 1 ? '1 attempt' : `${attempts} attempts`;
  if (attempts === 0) return 'not sent yet';
  if (last_error === 'url_unsafe') return `${tries}: the address of the URL is not a public one`;
  if (last_error !== null) return `${tries}: ${last_error.replaceAll('_', ' ')}`;
  return last_status_code === null ? tries : `${tries}: the receiver answered ${last_status_code}`;
}
