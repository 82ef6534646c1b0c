/** What a process of ours is given besides its own variables: nothing that would configure the service. */
export function childEnv(own: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE, ...own };
}
