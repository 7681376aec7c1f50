import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { projectFolders } from '../settings/project-folders.ts'
import { readText } from '../settings/read-text.ts'

/** How a project installs packages, and runs their commands. */
export interface PackageTool {
  readonly install: string
  readonly installDev: string
  readonly run: string
}

const npm: PackageTool = {
  install: 'npm install',
  installDev: 'npm install --save-dev',
  run: 'npx',
}

const tools: Readonly<Record<string, PackageTool>> = {
  npm,
  pnpm: { install: 'pnpm add', installDev: 'pnpm add --save-dev', run: 'pnpm exec' },
  yarn: { install: 'yarn add', installDev: 'yarn add --dev', run: 'yarn' },
  bun: { install: 'bun add', installDev: 'bun add --dev', run: 'bunx' },
}

/** What each leaves in a project. */
const marks: readonly (readonly [file: string, tool: string])[] = [
  ['pnpm-lock.yaml', 'pnpm'],
  ['pnpm-workspace.yaml', 'pnpm'],
  ['yarn.lock', 'yarn'],
  ['bun.lock', 'bun'],
  ['bun.lockb', 'bun'],
  ['package-lock.json', 'npm'],
]

/** By `packageManager` of package.json or a lock file, the nearest first; npm if nothing says it. */
export function packageTool(folder: string): PackageTool {
  for (const at of projectFolders(folder)) {
    const [, mark] = marks.find(([file]) => existsSync(join(at, file))) ?? []
    const name = declaredIn(join(at, 'package.json')) ?? mark
    if (name !== undefined) return tools[name] ?? npm
  }
  return npm
}

/** `pnpm@10.1.0` */
function declaredIn(manifest: string): string | undefined {
  try {
    const { packageManager } = JSON.parse(readText(manifest)) as {
      readonly packageManager?: string
    }
    return packageManager?.split('@')[0]
  } catch {
    return undefined
  }
}
