/** What an adapter knows of a request that is not in it. */
export interface RequestContext {
  /** The address of the peer. */
  readonly address?: string | undefined
  /** Where the framework has mounted us, at the start of the path. */
  readonly base?: string | undefined
}

const contexts = new WeakMap<Request, RequestContext>()

/** Frameworks call handlers with arguments of their own, so this is not one. */
export function rememberContext(request: Request, context: RequestContext): void {
  contexts.set(request, context)
}

export function contextOf(request: Request): RequestContext {
  return contexts.get(request) ?? {}
}
