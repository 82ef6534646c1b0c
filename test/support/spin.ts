/** Works for so many milliseconds without a pause. */
export function spin(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}
