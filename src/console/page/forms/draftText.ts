import { useState } from 'preact/hooks';

/**
 * The text of a field whose value others change, too. Typed text stays as it is until somebody else changes the value.
 * A text that is not a value yet keeps the last value.
 */
export function useDraftText<T>(
  value: T,
  format: (value: T) => string,
): { text: string; type: (text: string, value: T) => void } {
  const [typed, setTyped] = useState<{ text: string; value: T } | null>(null);
  const isOwn = typed !== null && JSON.stringify(typed.value) === JSON.stringify(value);
  return {
    text: isOwn ? typed.text : format(value),
    type: (text, to) => setTyped({ text, value: to }),
  };
}
