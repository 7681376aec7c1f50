import {
  type DynamicModule,
  type FactoryProvider,
  Global,
  Logger,
  Module,
  type ModuleMetadata,
  type Provider,
} from '@nestjs/common'
import {
  APP_FILTER,
  DiscoveryModule,
  DiscoveryService,
  HttpAdapterHost,
  MetadataScanner,
} from '@nestjs/core'
import {
  assertStopOptions,
  createHoldfast,
  type Driver,
  type HoldfastOptions,
  type StopOptions,
} from 'holdfast'
import { expressErrors, type HttpErrorOptions } from 'holdfast/http'
import { type AmbientTransactions, ownTransactions } from './ambient.ts'
import { CurrentTransaction } from './current-transaction.ts'
import { HoldfastExceptionFilter } from './exception-filter.ts'
import { HoldfastHealthIndicator } from './health-indicator.ts'
import {
  aBoolean,
  aFunction,
  aList,
  anObject,
  anything,
  assertOptions,
  type Form,
  type KnownOptions,
  refused,
} from './known-options.ts'
import { Runtime } from './runtime.ts'
import { scheduleOf, tickMethodsOf } from './tick.ts'
import { ANSWERS, HOLDFAST, RUNTIME } from './tokens.ts'

/** Settings of the module. */
export interface HoldfastModuleOptions<Tx> {
  /** Your client as Holdfast knows it: `fromPg(pool)`, `fromPrisma(prisma)`, … */
  readonly driver: Driver<Tx>
  /** Those of `createHoldfast`. */
  readonly options?: HoldfastOptions
  /** How the transaction around a call is found: `clsTransactions(TransactionHost)`. @defaultValue kept by the module */
  readonly ambient?: AmbientTransactions<Tx>
  /** Whether methods under `@Tick` are started in this process. @defaultValue true */
  readonly ticks?: boolean
  /** Settings of the answers to errors over HTTP. By default those of 500 and above are logged. */
  readonly answers?: HttpErrorOptions
  /** How long the shutdown waits for what is under way. @defaultValue { within: '20 s', leaveAfter: '5 s' } */
  readonly close?: StopOptions
  /** Called when Holdfast is closed, for what it needs until then. @example afterClose: () => pool.end() */
  readonly afterClose?: () => unknown
}

/** Settings that are made by a factory. */
export interface HoldfastModuleAsyncOptions<Tx> extends Pick<ModuleMetadata, 'imports'> {
  readonly inject?: FactoryProvider['inject']
  readonly useFactory: FactoryProvider<HoldfastModuleOptions<Tx>>['useFactory']
}

const OPTIONS: unique symbol = Symbol.for('holdfast.nestjs.options')

const logger = new Logger('HoldfastModule')

/**
 * Holdfast in a Nest application: one for the whole of it, global. Call `app.enableShutdownHooks()`, so that the module
 * ends what runs before the process ends.
 *
 * @example
 * HoldfastModule.forRoot({ driver: fromPg(pool), afterClose: () => pool.end() })
 */
export class HoldfastModule {
  /** With settings that are known. */
  static forRoot<Tx>(options: HoldfastModuleOptions<Tx>): DynamicModule {
    return HoldfastModule.forRootAsync({ useFactory: () => options })
  }

  /**
   * With settings that other providers are needed for.
   *
   * @example
   * HoldfastModule.forRootAsync({
   *   imports: [DatabaseModule],
   *   inject: [PrismaService],
   *   useFactory: (prisma: PrismaService) => ({ driver: fromPrisma(prisma) }),
   * })
   */
  static forRootAsync<Tx>(given: HoldfastModuleAsyncOptions<Tx>): DynamicModule {
    assertOptions(given, asyncOptions)
    if (given.useFactory === undefined)
      throw refused('useFactory', 'useFactory is missing: a function that makes the settings')
    return {
      module: HoldfastModule,
      imports: [DiscoveryModule, ...(given.imports ?? [])],
      providers: [
        { provide: OPTIONS, inject: given.inject ?? [], useFactory: given.useFactory },
        ...providers,
      ],
      exports: [HOLDFAST, RUNTIME, CurrentTransaction, HoldfastHealthIndicator],
    }
  }
}

Module({})(HoldfastModule)
Global()(HoldfastModule)

type Options = HoldfastModuleOptions<unknown>

const providers: Provider[] = [
  { provide: RUNTIME, inject: [OPTIONS], useFactory: runtimeOf },
  { provide: HOLDFAST, inject: [RUNTIME], useFactory: ({ hf }: Runtime<unknown>) => hf },
  {
    provide: CurrentTransaction,
    inject: [RUNTIME],
    useFactory: ({ ambient }: Runtime<unknown>) => new CurrentTransaction(ambient),
  },
  {
    provide: HoldfastHealthIndicator,
    inject: [RUNTIME, HttpAdapterHost],
    useFactory: (...args: ConstructorParameters<typeof HoldfastHealthIndicator>) =>
      new HoldfastHealthIndicator(...args),
  },
  {
    provide: ANSWERS,
    inject: [OPTIONS],
    useFactory: ({ answers }: Options): HttpErrorOptions => ({ log: logFailure, ...answers }),
  },
  { provide: APP_FILTER, useClass: HoldfastExceptionFilter },
  {
    provide: Symbol.for('holdfast.nestjs.life'),
    inject: [OPTIONS, RUNTIME, DiscoveryService, MetadataScanner],
    useFactory: (...args: ConstructorParameters<typeof Life>) => new Life(...args),
  },
]

const transactions: Form = [
  (value) => {
    const { find, run } = (value ?? {}) as Partial<AmbientTransactions<unknown>>
    return typeof find === 'function' && typeof run === 'function'
  },
  'what clsTransactions() makes, with find and run',
]

const knownOptions: KnownOptions<Options> = {
  driver: anything,
  options: anObject,
  ambient: transactions,
  ticks: aBoolean,
  answers: anObject,
  close: anObject,
  afterClose: aFunction,
}

const asyncOptions: KnownOptions<HoldfastModuleAsyncOptions<unknown>> = {
  imports: aList,
  inject: aList,
  useFactory: aFunction,
}

/** All of them when the application starts: those of the shutdown would be read when it is too late. */
function runtimeOf(options: Options): Runtime<unknown> {
  if (typeof options?.driver !== 'object' || options.driver === null)
    throw refused('driver', 'driver is missing: fromPg(pool), fromPrisma(prisma), …')
  assertOptions(options, knownOptions)
  assertStopOptions(options.close, 'close')
  // Looks at its settings, as it would in any other framework.
  expressErrors(options.answers)
  const hf = createHoldfast(options.driver, options.options)
  return new Runtime(hf, options.ambient ?? ownTransactions())
}

const logFailure: NonNullable<HttpErrorOptions['log']> = (error, { status }) => {
  if (status >= 500) logger.error(error.message, error.stack)
}

/** What is done when the application starts and ends. */
class Life {
  readonly #options: Options
  readonly #runtime: Runtime<unknown>
  readonly #discovery: DiscoveryService
  readonly #scanner: MetadataScanner

  constructor(
    options: Options,
    runtime: Runtime<unknown>,
    discovery: DiscoveryService,
    scanner: MetadataScanner,
  ) {
    this.#options = options
    this.#runtime = runtime
    this.#discovery = discovery
    this.#scanner = scanner
  }

  /** Looked for also where they are not started: a mistake is one everywhere. */
  onApplicationBootstrap(): void {
    // All are declared before the first is started: none runs in an application that does not start.
    const schedules = tickMethodsOf(this.#discovery, this.#scanner).map((method) =>
      scheduleOf(this.#runtime, method),
    )
    if (this.#options.ticks === false) return
    for (const schedule of schedules) schedule.start()
  }

  /**
   * When Nest calls this, the server has stopped to listen and every request is answered. Closed any sooner, Holdfast
   * would refuse the second step of a request that is under way.
   */
  async onApplicationShutdown(): Promise<void> {
    const { close = { within: '20 s' }, afterClose } = this.#options
    try {
      const { left } = await this.#runtime.hf.close(close)
      if (left.length > 0)
        logger.warn(
          `left behind: ${left.map(({ what }) => what).join(', ')}; give close.within more time`,
        )
    } finally {
      await afterClose?.()
    }
  }
}
