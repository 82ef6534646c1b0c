import { Ajv, type ValidateFunction } from 'ajv';
import formats from 'ajv-formats';
import type { ApiDocument } from '../../../src/http/openapi/document.ts';
import { describedApi } from './describedApi.ts';

// ajv-formats is CommonJS whose types name the module as its own default export.
const addFormats = formats as unknown as typeof formats.default;

const DOCUMENT = 'api';

/**
 * The description in which an object has no fields but those described, so that a field nobody documented is an
 * error (unless it `allowsOthers`, as for the bodies of requests), and validators of its schemas by JSON pointer,
 * compiled when first used.
 */
export class StrictApi {
  readonly document: ApiDocument;
  readonly #ajv: Ajv;
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(document: ApiDocument, { allowsOthers = false } = {}) {
    this.document = asJsonSchema(document, allowsOthers) as ApiDocument;
    this.#ajv = new Ajv({ strict: false, validateSchema: false, code: { optimize: false } });
    addFormats(this.#ajv);
    this.#ajv.addSchema(this.document, DOCUMENT);
  }

  /** What is wrong with a value by the schema that the keys lead to; null when nothing is. */
  mismatchOf(keys: readonly string[], value: unknown): string | null {
    const pointer = keys
      .map((key) => key.replaceAll('~', '~0').replaceAll('/', '~1'))
      .map(encodeURIComponent);
    const reference = `${DOCUMENT}#/${pointer.join('/')}`;
    let validate = this.#validators.get(reference);
    if (validate === undefined) {
      validate = this.#ajv.compile({ $ref: reference });
      this.#validators.set(reference, validate);
    }
    return validate(value) === true ? null : this.#ajv.errorsText(validate.errors, { dataVar: 'body' });
  }
}

let shared: StrictApi | null = null;

/** Of the service's own description, made once in a process. */
export function strictApi(): StrictApi {
  shared ??= new StrictApi(describedApi());
  return shared;
}

/** As JSON Schema, which has a number where OpenAPI 3.0 marks `minimum` as exclusive. */
function asJsonSchema(node: unknown, allowsOthers: boolean): unknown {
  if (Array.isArray(node)) return node.map((element) => asJsonSchema(element, allowsOthers));
  if (typeof node !== 'object' || node === null) return node;
  const copy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(node)) copy[key] = asJsonSchema(value, allowsOthers);
  if (copy['exclusiveMinimum'] === true) {
    copy['exclusiveMinimum'] = copy['minimum'];
    delete copy['minimum'];
  }
  if (!allowsOthers && copy['type'] === 'object' && copy['additionalProperties'] === undefined) {
    copy['additionalProperties'] = false;
  }
  return copy;
}
