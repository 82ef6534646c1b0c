import htm from 'htm';
import { h, type VNode } from 'preact';

/** Markup as a tagged template, without a build step. */
export const html = (htm as unknown as { bind(create: typeof h): unknown }).bind(h) as (
  strings: TemplateStringsArray,
  ...values: unknown[]
) => VNode;
