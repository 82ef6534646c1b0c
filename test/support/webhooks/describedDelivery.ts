import { strictApi } from '../http/strictApi.ts';

interface Callback {
  readonly parameters: readonly { readonly name: string; readonly required: boolean }[];
}

/** Throws when what the service sent to an endpoint is not as the description of the API says. */
export function checkDelivery(headers: Readonly<Record<string, string>>, text: string): void {
  const api = strictApi();
  const mismatch =
    missingHeader(headers) ?? api.mismatchOf(['components', 'schemas', 'DeliveryBody'], JSON.parse(text));
  if (mismatch !== null) throw new Error(`not as described: a delivery: ${mismatch}\n${text.slice(0, 2000)}`);
}

function missingHeader(headers: Readonly<Record<string, string>>): string | null {
  const create = strictApi().document.paths['/api/webhooks']?.['post'] as unknown as {
    callbacks: { delivery: Readonly<Record<string, { post: Callback }>> };
  };
  const callback = create.callbacks.delivery['{$request.body#/url}']?.post;
  const missing = callback?.parameters.find(({ name }) => headers[name.toLowerCase()] === undefined);
  return missing === undefined ? null : `the header ${missing.name} is missing`;
}
