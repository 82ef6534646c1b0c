import { useState } from 'preact/hooks';

/**
 * The text of a field whose value others change, too. What was typed stays as it is until somebody else changes the
 * value; a text that is no value yet leaves the last one.
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
