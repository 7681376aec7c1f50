import type { TSESTree } from '@typescript-eslint/types'
import type { SourceCode } from 'eslint'
import { type Imported, importedBy } from '../syntax/imports.ts'
import {
  initializerOf,
  type Node,
  propertyName,
  textOf,
  unwrapped,
  variableOf,
} from '../syntax/node.ts'

const verbs = ['get', 'post', 'put', 'patch', 'delete', 'head', 'options', 'del']

/** What of a module asks another machine. */
interface Asking {
  /** The module, or its default, is itself a function that does. */
  readonly itself?: boolean
  /** Functions that it exports, or that its default has. */
  readonly methods?: readonly string[]
  /** What makes another client of the same kind. */
  readonly makers?: readonly string[]
  /** Its functions answer by callbacks and events. */
  readonly byEvents?: boolean
}

const nodeHttp: Asking = { methods: ['request', 'get'], byEvents: true }

const modules: Readonly<Record<string, Asking>> = {
  axios: {
    itself: true,
    methods: [...verbs, 'request', 'postForm', 'putForm', 'patchForm'],
    makers: ['create'],
  },
  got: { itself: true, methods: [...verbs, 'got'], makers: ['extend'] },
  ky: { itself: true, methods: verbs, makers: ['create', 'extend'] },
  ofetch: { methods: ['ofetch', '$fetch'], makers: [] },
  undici: { methods: ['fetch', 'request'] },
  'node-fetch': { itself: true },
  'cross-fetch': { itself: true, methods: ['fetch'] },
  'isomorphic-fetch': { itself: true },
  superagent: { itself: true, methods: verbs },
  needle: { itself: true, methods: verbs },
  'node:http': nodeHttp,
  'node:https': nodeHttp,
  http: nodeHttp,
  https: nodeHttp,
}

/** A call that asks another machine over the network. */
export interface NetworkCall {
  /** As it is written: `axios.post`. */
  readonly name: string
  /** Whether it answers by callbacks, so that nobody waits for what it returns. */
  readonly byEvents: boolean
}

/** What a call asks over the network, if it is one of the clients that we know. */
export function networkCall(
  source: SourceCode,
  call: TSESTree.CallExpression,
): NetworkCall | undefined {
  const callee = unwrapped(call.callee)
  const asked = isGlobalFetch(source, callee) ? { byEvents: false } : askedThrough(source, callee)
  if (asked === undefined || isLocal(call.arguments[0])) return undefined
  return { name: source.getText(callee as never), byEvents: asked.byEvents }
}

function isGlobalFetch(source: SourceCode, callee: Node): boolean {
  if (callee.type === 'Identifier') {
    return callee.name === 'fetch' && variableOf(source, callee) === undefined
  }
  if (callee.type !== 'MemberExpression' || propertyName(callee) !== 'fetch') return false
  const { object } = callee
  return (
    object.type === 'Identifier' &&
    (object.name === 'globalThis' || object.name === 'window') &&
    variableOf(source, object) === undefined
  )
}

function askedThrough(source: SourceCode, callee: Node): { byEvents: boolean } | undefined {
  const client = clientOf(source, callee)
  if (client !== undefined) {
    const { asking, name } = client
    const isAsking = name === undefined ? asking.itself : asking.methods?.includes(name)
    return isAsking ? { byEvents: asking.byEvents ?? false } : undefined
  }
  if (callee.type !== 'MemberExpression') return undefined
  const of = clientOf(source, unwrapped(callee.object))
  const method = propertyName(callee)
  if (of === undefined || of.name !== undefined || method === undefined) return undefined
  const isAsking = of.asking.methods?.includes(method)
  return isAsking ? { byEvents: of.asking.byEvents ?? false } : undefined
}

/** The module that an expression is, or the function of it by name. */
function clientOf(
  source: SourceCode,
  node: Node,
): { readonly asking: Asking; readonly name?: string } | undefined {
  if (node.type !== 'Identifier') return undefined
  const imported = importedBy(source, node)
  if (imported !== undefined) return clientOfImport(imported)
  const variable = variableOf(source, node)
  const init = variable && initializerOf(variable)?.init
  const made = init && unwrapped(init)
  if (made?.type !== 'CallExpression') return undefined
  const callee = unwrapped(made.callee)
  if (callee.type !== 'MemberExpression') return undefined
  const maker = clientOf(source, unwrapped(callee.object))
  const isMaker = maker?.asking.makers?.includes(propertyName(callee) ?? '')
  return maker && isMaker ? { asking: maker.asking } : undefined
}

function clientOfImport({
  module,
  name,
}: Imported): { readonly asking: Asking; readonly name?: string } | undefined {
  if (!Object.hasOwn(modules, module)) return undefined
  const asking = modules[module]
  if (asking === undefined) return undefined
  const isModule = name === 'default' || name === '*' || name === module
  return isModule ? { asking } : { asking, name }
}

/** An address that is on this machine and needs no network: `data:`, `blob:`, `file:`. */
function isLocal(address: Node | undefined): boolean {
  const text = textOf(address)
  return text !== undefined && /^(data|blob|file):/.test(text)
}
