import { Inject } from '@nestjs/common'

/** Injection token of the Holdfast of this application, which is an interface and no class. */
export const HOLDFAST: unique symbol = Symbol.for('holdfast.nestjs.holdfast')

/** Injection token of what decorated methods run with. */
export const RUNTIME: unique symbol = Symbol.for('holdfast.nestjs.runtime')

/**
 * Injects the Holdfast of this application.
 *
 * @example constructor(@InjectHoldfast() private readonly hf: Holdfast<PoolClient>) {}
 */
export function InjectHoldfast(): PropertyDecorator & ParameterDecorator {
  return Inject(HOLDFAST)
}

/** Injection token of the settings of the answers to errors. */
export const ANSWERS: unique symbol = Symbol.for('holdfast.nestjs.answers')
