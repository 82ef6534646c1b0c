import { TLSSocket } from 'node:tls';

/** Why an HTTPS exchange with a receiver failed. The owner reads it as last_error. */
export type ExchangeError =
  | 'timeout'
  | 'connection_refused'
  | 'connection_failed'
  | 'connection_reset'
  | 'certificate_invalid'
  | 'tls_failed'
  | 'invalid_response'
  | 'invalid_request';

/** Classifies an error of node:https by its code and by the certificate check of the socket, never by its text. */
export function exchangeError(error: unknown, socket: unknown): ExchangeError {
  if (socket instanceof TLSSocket && socket.authorizationError) return 'certificate_invalid';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code.startsWith('HPE_')) return 'invalid_response';
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_')) return 'tls_failed';
  if (code === 'ECONNREFUSED') return 'connection_refused';
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'connection_reset';
  return 'connection_failed';
}
