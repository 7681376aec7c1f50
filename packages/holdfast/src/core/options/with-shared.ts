/** What holds for all parts, and what one part says over it; `undefined` says nothing. */
export function withShared<O extends object>(shared: NoInfer<Partial<O>>, given: O | undefined): O {
  const said = Object.entries(given ?? {}).filter(([, value]) => value !== undefined)
  return { ...shared, ...Object.fromEntries(said) } as O
}
