import type { Action, ApiError, Info } from '../../core/wire.ts'
import { base } from '../base.ts'

/** An answer that is not what was asked for, or none at all. */
export class ApiFailure extends Error {
  override readonly name = 'ApiFailure'
  readonly status: number
  readonly error: ApiError

  constructor(status: number, error: ApiError) {
    super(error.message)
    this.status = status
    this.error = error
  }
}

/** `TOKEN_WRONG` is an answer to a login, everything else means that there is none. */
export function needsLogin(failure: ApiFailure): boolean {
  return failure.status === 401
}

export type Parameters = Readonly<Record<string, string | number | undefined>>

/** The address of a route. */
export function route(path: string, parameters: Parameters = {}): URL {
  const url = new URL(`api/${path}`, base)
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== '') url.searchParams.set(name, String(value))
  }
  return url
}

/** Asks for data. */
export async function ask<T>(
  path: string,
  parameters: Parameters = {},
  signal?: AbortSignal,
): Promise<T> {
  return await answered<T>(route(path, parameters), signal ? { signal } : {})
}

/** Logs in; afterwards the browser has a cookie. */
export async function login(token: string): Promise<void> {
  await answered(route('login'), post({ token }))
}

export async function logout(info: Info): Promise<void> {
  await answered(route('logout'), post({}, info.csrf))
}

/** Changes something. `confirm` repeats what it is about, as the person has confirmed it. */
export async function act(
  info: Info,
  action: Action,
  body: { readonly [name: string]: unknown; readonly confirm: string },
  database: string | undefined,
): Promise<boolean> {
  const { done } = await answered<{ readonly done: boolean }>(
    route(`actions/${action}`, { database }),
    post(body, info.csrf),
  )
  return done
}

function post(body: object, csrf?: string): RequestInit {
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(csrf === undefined ? {} : { 'x-holdfast-csrf': csrf }),
    },
    body: JSON.stringify(body),
  }
}

async function answered<T>(url: URL, init: RequestInit): Promise<T> {
  let response: Response
  try {
    response = await fetch(url, { credentials: 'same-origin', ...init })
  } catch (error) {
    if (init.signal?.aborted) throw error
    throw new ApiFailure(0, {
      code: 'NO_ANSWER',
      message: 'The console’s server does not answer.',
      next: 'Is it still running, and are you still on the network that reaches it? This page tries again by itself.',
    })
  }
  const data: unknown = await response.json().catch(() => undefined)
  if (response.ok && data !== undefined) return data as T
  const { error } = (data ?? {}) as { readonly error?: ApiError }
  throw new ApiFailure(
    response.status,
    error ?? {
      code: `HTTP_${response.status}`,
      message: `The server answered with status ${response.status}, and not as the console does.`,
      next: 'Look whether a proxy in front of the console is in the way.',
    },
  )
}
