import type { Flow, RealBug } from './real-bug.ts'

interface Claim {
  readonly get: (column: string) => unknown
}

interface ClaimModel {
  sync(): Promise<unknown>
  findCreateFind(options: {
    where: { key: string }
    defaults: { owner: string }
    transaction: unknown
  }): Promise<[Claim, boolean]>
}

interface Sequelize {
  define(name: string, columns: object, options: object): ClaimModel
  transaction<T>(work: (transaction: unknown) => Promise<T>): Promise<T>
  close(): Promise<void>
}

interface SequelizeModule {
  readonly Sequelize: new (
    url: string,
    options: { dialect: 'postgres'; logging: false },
  ) => Sequelize
  readonly DataTypes: { readonly STRING: unknown }
}

async function withSequelize<T>(
  load: NodeJS.Require,
  url: string,
  work: (sequelize: Sequelize, claims: ClaimModel) => Promise<T>,
): Promise<T> {
  const { Sequelize, DataTypes } = load('sequelize') as SequelizeModule
  const sequelize = new Sequelize(url, { dialect: 'postgres', logging: false })
  const columns = {
    key: { type: DataTypes.STRING, unique: true },
    owner: { type: DataTypes.STRING },
  }
  try {
    const claims = sequelize.define('claim', columns, { timestamps: false })
    return await work(sequelize, claims)
  } finally {
    await sequelize.close()
  }
}

/** Finds the claim or makes it, within a transaction of its own: it must give a claim either way. */
const prepare: RealBug['prepare'] = async (load, url) => {
  await withSequelize(load, url, (_, claims) => claims.sync())
  const claim: Flow = async (reach) =>
    await withSequelize(load, reach.url, async (sequelize, claims) => {
      const [found, created] = await sequelize.transaction((transaction) =>
        claims.findCreateFind({
          where: { key: 'seat 1' },
          defaults: { owner: reach.flow },
          transaction,
        }),
      )
      return `${created ? 'created by' : 'found, of'} ${String(found.get('owner'))}`
    })
  return {
    seed: 'TRUNCATE claims',
    flow: claim,
    check: 'SELECT count(*) = 1 AS holds FROM claims',
  }
}

const scene = 'findCreateFind() of one key in two transactions'

export const sequelizeBugs: readonly RealBug[] = [
  { release: 'sequelize@6.7.0', scene, known: 'race', prepare },
  { release: 'sequelize@6.8.0', scene, known: 'race-free', prepare },
]
