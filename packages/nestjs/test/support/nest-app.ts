import { type INestApplication, Logger, Module, type ModuleMetadata } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { fromPg } from 'holdfast/drivers/pg'
import type pg from 'pg'
import { onTestFinished } from 'vitest'
import { HoldfastModule, type HoldfastModuleOptions } from '../../src/index.ts'

export type Platform = 'Express' | 'Fastify' | 'Express of Nest 11'
export const platforms: readonly Platform[] = ['Express', 'Fastify']

/** That of Nest 11 takes no type of JSON but its own for the body of an error. */
class OlderExpressAdapter extends ExpressAdapter {
  override reply(
    response: { getHeader(name: string): unknown; setHeader(name: string, value: string): unknown },
    body: unknown,
    statusCode?: number,
  ): unknown {
    const type = response.getHeader('Content-Type')
    const isObject = typeof body === 'object' && body !== null
    const isError =
      isObject &&
      (Number((body as { statusCode?: unknown }).statusCode) >= 400 || (statusCode ?? 0) >= 400)
    if (typeof type === 'string' && !type.startsWith('application/json') && isError)
      response.setHeader('Content-Type', 'application/json')
    return super.reply(response, body, statusCode)
  }
}

function adapterOf(platform: Platform): ExpressAdapter | FastifyAdapter {
  if (platform === 'Fastify') return new FastifyAdapter()
  return platform === 'Express' ? new ExpressAdapter() : new OlderExpressAdapter()
}

/** An application, and what it says to requests. */
export interface NestApp {
  readonly app: INestApplication
  ask(method: string, path: string, options?: AskOptions): Promise<Asked>
}

export interface AskOptions {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface Asked {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: unknown
}

export interface AppOptions extends Partial<HoldfastModuleOptions<pg.PoolClient>> {
  readonly pool: pg.Pool
  readonly platform?: Platform
  /** Is not listened for. */
  readonly silent?: boolean
}

/** Starts an application with these providers and controllers; it is closed when the test ends. */
export async function startApp(
  { pool, platform = 'Express', silent = false, ...options }: AppOptions,
  metadata: ModuleMetadata,
): Promise<NestApp> {
  class AppModule {}
  Module({
    ...metadata,
    imports: [
      HoldfastModule.forRoot({ driver: fromPg(pool), options: { wait: '20 s' }, ...options }),
      ...(metadata.imports ?? []),
    ],
  })(AppModule)
  Logger.overrideLogger(false)
  const app = await NestFactory.create(AppModule, adapterOf(platform), {
    logger: false,
    abortOnError: false,
  })
  // Closing it once more does nothing new: Holdfast remembers.
  onTestFinished(async () => await app.close())
  if (silent) await app.init()
  else await app.listen(0, '127.0.0.1')
  return {
    app,
    async ask(method, path, { body, headers = {} } = {}) {
      const response = await fetch(`${await app.getUrl()}/${path}`, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      const isJson = /json/.test(response.headers.get('content-type') ?? '')
      return {
        status: response.status,
        headers: response.headers,
        text,
        body: isJson ? (JSON.parse(text) as unknown) : text,
      }
    },
  }
}
