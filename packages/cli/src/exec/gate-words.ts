/** The file descriptor on which guardian and gate talk. */
export const gateLine = 3

const kept = 'HOLDFAST_GATE_'

type Environment = Readonly<Record<string, string | undefined>>

/** Variables that Node reads are the command's, and not those of what is to become it. */
export const gateNames = {
  hidden: (environment: Environment): NodeJS.ProcessEnv =>
    renamed(environment, (name) => (name.startsWith('NODE_') ? `${kept}${name}` : name)),
  restored: (environment: Environment): NodeJS.ProcessEnv =>
    renamed(environment, (name) => (name.startsWith(kept) ? name.slice(kept.length) : name)),
}

function renamed(environment: Environment, rename: (name: string) => string): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [rename(name), value]),
  )
}
