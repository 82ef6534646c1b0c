export const INGEST_TOKEN = 'token-of-the-bench';

/** Posts points to the ingest port at `url`. Throws unless it answers 200. */
export async function postPoints(
  url: string,
  points: readonly object[],
): Promise<{ accepted: number; late: number }> {
  const response = await fetch(`${url}/positions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Ingest-Token': INGEST_TOKEN },
    body: JSON.stringify(points),
  });
  const text = await response.text();
  if (response.status !== 200)
    throw new Error(`/positions answered ${response.status}: ${text.slice(0, 500)}`);
  return (JSON.parse(text) as { data: { accepted: number; late: number } }).data;
}
