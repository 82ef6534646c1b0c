/** Which colours the person prefers. */
export type Scheme = 'light' | 'dark';

const dark = matchMedia('(prefers-color-scheme: dark)');

export function scheme(): Scheme {
  return dark.matches ? 'dark' : 'light';
}

/** Calls `listener` when the person changes it, until the function that it returns is called. */
export function onScheme(listener: () => void): () => void {
  dark.addEventListener('change', listener);
  return () => dark.removeEventListener('change', listener);
}
