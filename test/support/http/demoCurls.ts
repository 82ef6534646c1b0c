/** The lines that the demo prints to be pasted. */
export function curlLines(text: string): string[] {
  return text.split('\n').filter((line) => line.trimStart().startsWith('curl '));
}

/** Does what such a line says, without curl; returns the body. Throws when it is not answered with 200. */
export async function askCurl(line: string): Promise<{ data: unknown }> {
  const [, name, value, url] = /-H "([^:]+): ([^"]+)" "([^"]+)"/.exec(line) ?? [];
  if (name === undefined || value === undefined || url === undefined) throw new Error('no line of the demo');
  const response = await fetch(url, { headers: { [name]: value } });
  if (response.status !== 200) throw new Error(`${url} answers ${response.status}`);
  return (await response.json()) as { data: unknown };
}
