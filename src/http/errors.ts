/** Every code that an answer can carry, with its status and the message used when nothing better is known. */
export const ERRORS = {
  BAD_REQUEST: [400, 'a parameter is missing or invalid'],
  WEBHOOK_URL_INVALID: [400, 'the webhook URL is not acceptable'],
  IMEI_REQUIRED: [400, 'an IMEI is required'],
  COORDINATES_REQUIRED: [400, 'lat and lng are required'],
  INVALID_COORDINATES: [400, 'lat must be a number from -90 to 90, lng a number from -180 to 180'],
  INVALID_BODY: [400, 'the body cannot be read'],
  API_KEY_REQUIRED: [403, 'an API key is required in the header X-API-Key'],
  API_KEY_INVALID: [403, 'this API key is not known'],
  API_KEY_REVOKED: [403, 'this API key has been revoked'],
  API_KEY_OWNER_INACTIVE: [403, 'the owner of this API key is inactive'],
  API_KEY_IP_BLOCKED: [403, 'this API key may not be used from this address'],
  INSUFFICIENT_SCOPE: [403, 'this API key lacks the permission'],
  FORBIDDEN: [403, 'not allowed'],
  NOT_FOUND: [404, 'not found'],
  DEVICE_NOT_FOUND: [404, 'no device with this IMEI'],
  LOCATION_NOT_FOUND: [404, 'this device has not reported a position yet'],
  METHOD_NOT_ALLOWED: [405, 'this path does not support the method'],
  CONFLICT: [409, 'external_id is already used by another area'],
  PAYLOAD_TOO_LARGE: [413, 'the body is too large'],
  VALIDATION_ERROR: [422, 'the body is not valid'],
  HEADERS_TOO_LARGE: [431, 'the request headers are too large'],
  TOO_MANY_REQUESTS: [429, 'rate limit exceeded'],
  INTERNAL_ERROR: [500, 'internal error'],
  SERVICE_UNAVAILABLE: [503, 'the database cannot be reached; try again shortly'],
} as const satisfies Readonly<Record<string, readonly [status: number, message: string]>>;

export type ErrorCode = keyof typeof ERRORS;
