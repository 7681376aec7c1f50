import { existsSync } from 'node:fs'
import { extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ClaimsOptions } from 'holdfast/claims'
import { isOwn } from './is-own.ts'
import { projectFolders } from './project-folders.ts'
import { readText } from './read-text.ts'
import { Misuse } from '../failure.ts'

/** A primary in the configuration file: its URL, and how other primaries reach it if that is not the same. */
export type ShardSetting = string | { readonly url: string; readonly peerUrl?: string }

/** What can be written into `holdfast.config.json`, `.js`, `.mjs` or `.ts`. */
export interface Config {
  readonly databaseUrl?: string
  /** Name of the schema. */
  readonly schema?: string
  /** Tables that rows are claimed from, as `hf.claims` is told about them. */
  readonly claims?: readonly ClaimsOptions[]
  /** The primaries of `holdfast shards`, by their names. */
  readonly shards?: Readonly<Record<string, ShardSetting>>
  /** Flags of `holdfast console`, without their dashes. */
  readonly console?: Readonly<Record<string, string | number | boolean>>
}

const names = ['json', 'ts', 'js', 'mjs'].map((ending) => `holdfast.config.${ending}`)

/**
 * The first configuration file from this folder upwards, as far as the project goes. It is run, or says which database
 * to talk to, so it must not be somebody else's.
 *
 * @throws Misuse
 */
export function findConfig(folder: string): string | undefined {
  const file = projectFolders(resolve(folder))
    .flatMap((at) => names.map((name) => join(at, name)))
    .find((each) => existsSync(each))
  if (file === undefined || isOwn(file)) return file
  throw new Misuse(`${file} belongs to another user. If you trust it, name it with --config.`)
}

/** Reads one file. No value of it is repeated in a message: one is a database URL. @throws Misuse */
export async function readConfig(file: string): Promise<Config> {
  let content: unknown
  try {
    content =
      extname(file) === '.json'
        ? JSON.parse(readText(file))
        : ((await import(pathToFileURL(file).href)) as { readonly default?: unknown }).default
  } catch (error) {
    const { code, name } = error as NodeJS.ErrnoException
    throw new Misuse(`${file} cannot be read (${code ?? name}).`)
  }
  return checked(content, file)
}

type Check = readonly [test: (value: unknown) => boolean, wanted: string]

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isTable = (value: unknown): boolean => isObject(value) && 'table' in value

const isPrimary = (value: unknown): boolean =>
  isText(value) ||
  (isObject(value) &&
    'url' in value &&
    isText(value.url) &&
    (!('peerUrl' in value) || isText(value.peerUrl)))

const checks: Readonly<Record<keyof Config, Check>> = {
  databaseUrl: [isText, 'a text'],
  schema: [isText, 'a text'],
  claims: [
    (value) => Array.isArray(value) && value.every(isTable),
    'a list of claims options, each with a table',
  ],
  shards: [
    (value) => isObject(value) && Object.values(value).every(isPrimary),
    'an object of primaries by their names, each a URL or an object with url and peerUrl',
  ],
  console: [
    (value) =>
      isObject(value) &&
      Object.values(value).every((each) => ['string', 'number', 'boolean'].includes(typeof each)),
    'an object of flags and their values',
  ],
}

function checked(content: unknown, file: string): Config {
  if (!isObject(content)) throw new Misuse(`${file} must contain an object.`)
  for (const [key, value] of Object.entries(content)) {
    if (value === undefined) continue
    if (!Object.hasOwn(checks, key)) {
      throw new Misuse(
        `${file}: ${JSON.stringify(key)} is not known; ${Object.keys(checks).join(', ')} are.`,
      )
    }
    const [isFine, wanted] = checks[key as keyof Config]
    if (!isFine(value)) throw new Misuse(`${file}: ${key} must be ${wanted}.`)
  }
  return content as Config
}
