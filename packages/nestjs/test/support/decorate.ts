/** Decorators as the compiler applies them: Node runs our tests as they are, and knows no decorators. */
import 'reflect-metadata'
import { Controller, Inject, type InjectionToken, Injectable, type Type } from '@nestjs/common'

/** Whatever fits on the method. */
type AnyDecorator = (...args: never[]) => unknown

/** What a class has around its methods. */
export interface Around {
  /** Methods and what stands above them, top to bottom. */
  readonly methods?: Readonly<Record<string, readonly AnyDecorator[]>>
  /** Parameters of methods. */
  readonly params?: Readonly<Record<string, readonly ParameterDecorator[]>>
  /** What its constructor takes. */
  readonly takes?: readonly InjectionToken[]
  /** A controller at this path, or something injectable. */
  readonly at?: string
  readonly scope?: Parameters<typeof Injectable>[0]
}

/** The class, with decorators. */
export function decorated<T>(
  type: Type<T>,
  { methods = {}, params = {}, ...around }: Around,
): Type<T> {
  for (const [name, decorators] of Object.entries(params))
    for (const [at, decorator] of decorators.entries())
      decorator(type.prototype as object, name, at)
  for (const [name, decorators] of Object.entries(methods)) {
    const descriptor = Object.getOwnPropertyDescriptor(type.prototype, name)
    for (const decorator of decorators.toReversed())
      (decorator as (...args: unknown[]) => unknown)(type.prototype, name, descriptor)
    Object.defineProperty(type.prototype, name, descriptor as PropertyDescriptor)
  }
  for (const [at, token] of (around.takes ?? []).entries()) Inject(token)(type, undefined, at)
  if (around.at === undefined) Injectable(around.scope)(type)
  else Controller(around.at)(type)
  return type
}
