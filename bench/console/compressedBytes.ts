/** Bytes of everything that the page loads, as brotli: what it names itself, and what its modules ask for. */
export async function compressedBytes(address: string): Promise<number> {
  const html = await (await fetch(`${address}/console`)).text();
  const [, importMap = '{}'] = /<script type="importmap">(.*?)<\/script>/.exec(html) ?? [];
  const { imports = {} } = JSON.parse(importMap) as { imports?: Record<string, string> };
  const named = Array.from(html.matchAll(/(?:href|src)="(\/console[^"]+)"/g), ([, path]) => path as string);
  let bytes = 0;
  for (const path of new Set(['/console', ...named, ...Object.values(imports)])) {
    const headers = { 'Accept-Encoding': 'br' };
    const { headers: answered } = await fetch(address + path, { method: 'HEAD', headers });
    bytes += Number(answered.get('content-length'));
  }
  return bytes;
}
