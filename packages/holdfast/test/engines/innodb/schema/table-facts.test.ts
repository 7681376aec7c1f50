import { beforeAll, describe, expect, test } from 'vitest'
import { createTablesOn } from '../../../../src/engines/innodb/schema/create-tables.ts'
import { tableFacts, showTable } from '../../../../src/engines/innodb/schema/table-facts.ts'
import { createHoldfast, lockKey } from '../../../../src/mysql.ts'
import { eachInnodb } from '../support/each-innodb.ts'

/** What looks like a definition or an option, where users write what they want. */
const written = [
  'ENGINE=InnoDB',
  'ENGINE=MyISAM',
  ") ENGINE=InnoDB COMMENT='x",
  'PRIMARY KEY (`other`)',
  'a\nPRIMARY KEY (`other`),\n) ENGINE=InnoDB',
  "it's \\' \\",
  '`"',
]
/** Settings of a session that change how the server writes and reads a table. */
const modes = ['', 'ANSI_QUOTES', 'NO_BACKSLASH_ESCAPES', 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES']
/** What ANSI stands for, without ANSI itself. */
const partsOfAnsi = 'REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY'
const modesOfMariadb = [
  'ANSI',
  'ORACLE',
  'MSSQL',
  'POSTGRESQL',
  'DB2',
  'MAXDB',
  'NO_TABLE_OPTIONS',
  'NO_FIELD_OPTIONS',
  'NO_KEY_OPTIONS',
  'EMPTY_STRING_IS_NULL',
]
const inQuotes = (text: string): string =>
  `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
const asName = (text: string): string => `\`${text.replaceAll('`', '``')}\``

eachInnodb((place) => {
  const isMysql = place.server.startsWith('mysql')
  const all = [...modes, partsOfAnsi, ...(isMysql ? [] : modesOfMariadb)]

  // MySQL keeps quotes of a CHECK behind backslashes, and cannot open the table where those are no escapes.
  const isUnreadable = (text: string, mode: string): boolean =>
    place.server.startsWith('mysql') && mode.includes('NO_BACKSLASH') && /['\\]/.test(text)
  const clauses = (text: string, mode: string): readonly string[] => {
    const [told, name] = [inQuotes(text), asName(text.slice(0, 60))]
    return [
      `id INT COMMENT ${told}, other INT NOT NULL, ${name} VARCHAR(99) DEFAULT ${told}`,
      ...(isUnreadable(text, mode) ? [] : [`CHECK (${name} <> ${told})`]),
      `PRIMARY KEY (id) COMMENT ${told}`,
      `UNIQUE KEY ${asName(`${text.slice(0, 50)}!`)} (${name})`,
    ]
  }

  test.each(all)('nothing that users write counts, with sql_mode %s', async (mode) => {
    await using session = await place.session()
    for (const text of written) {
      for (const engine of ['InnoDB', 'MyISAM']) {
        await session.all(
          "SET sql_mode = ''",
          'DROP TABLE IF EXISTS told',
          `CREATE TABLE told (${clauses(text, mode).join()}) COMMENT=${inQuotes(text)} ENGINE=${engine}`,
          `SET sql_mode = '${mode}'`,
        )
        const facts = tableFacts(await session.rows(showTable('told').text))
        expect({ text, ...facts }).toMatchObject({
          text,
          isInnodb: engine === 'InnoDB',
          isOwn: false,
        })
        expect(facts.keys).toEqual([['id'], [text.slice(0, 60)]])
        expect([...facts.types.keys()]).toEqual(['id', 'other', text.slice(0, 60)])
        expect(facts.types.get('id')).toMatch(/^int(?:\(11\))? not null/)
        expect(await session.value('SELECT @@sql_mode')).toContain(mode.split(',')[0])
      }
    }
  })

  test('indexes are known by their columns, but for those that no statement may use', async () => {
    await using session = await place.session()
    const hidden = place.server.startsWith('mariadb') ? 'IGNORED' : 'INVISIBLE'
    await session.all(
      'DROP TABLE IF EXISTS indexed',
      `CREATE TABLE indexed (
         id INT, a INT COMMENT 'IGNORED', b VARCHAR(99), \`in ("visible\` INT,
         PRIMARY KEY (id), UNIQUE KEY one (a, id), KEY \`DESC\` (a, b DESC, id) COMMENT 'HASH',
         KEY part (a, b(3)), KEY odd (\`in ("visible\`, a), KEY hidden (b) ${hidden}, UNIQUE KEY \`no key\` (b) ${hidden}) ENGINE=InnoDB`,
    )
    const { indexes, keys } = tableFacts(await session.rows(showTable('indexed').text))
    expect(keys).toEqual([['id'], ['a', 'id']])
    const told = indexes.map(({ name, isUnique, columns, descending }) => ({
      name,
      isUnique,
      columns: columns.map((column) => (descending.has(column) ? `${column} DESC` : column)),
    }))
    expect(told).toEqual([
      { name: 'PRIMARY', isUnique: true, columns: ['id'] },
      { name: 'one', isUnique: true, columns: ['a', 'id'] },
      { name: 'DESC', isUnique: false, columns: ['a', 'b DESC', 'id'] },
      { name: 'odd', isUnique: false, columns: ['in ("visible', 'a'] },
    ])
  })

  test('to ask opens no snapshot', async () => {
    await using session = await place.session()
    await using other = await place.session()
    await other.rows('CREATE TABLE moving (id INT PRIMARY KEY) ENGINE=InnoDB')
    const seen = async (first: string): Promise<unknown> => {
      await other.rows('DELETE FROM moving')
      await session.all('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ', 'BEGIN', first)
      await other.rows('INSERT INTO moving VALUES (1)')
      const count = await session.value('SELECT COUNT(*) FROM moving')
      await session.rows('ROLLBACK')
      return count
    }
    expect(await seen(showTable('moving').text)).toBe(1)
    // Control: what does open one.
    expect(await seen('SELECT * FROM moving')).toBe(0)
  })

  describe('a pool with settings of its own', () => {
    beforeAll(async () => {
      await using session = await place.session()
      await session.all(
        'CREATE TABLE item (id INT PRIMARY KEY, code VARCHAR(9) UNIQUE, version INT NOT NULL) ENGINE=InnoDB',
        "INSERT INTO item VALUES (1, 'a', 1)",
      )
    })

    test.each(all)('everything works with sql_mode %s', async (mode) => {
      await using pool = place.pool(1)
      const handle = await pool.connect()
      await handle.query(`SET SESSION sql_mode = '${mode}'`)
      await handle.release()
      await using session = await place.session()
      await session.rows('DROP TABLE IF EXISTS holdfast_lock')
      await createTablesOn(pool.driver, undefined)
      const hf = createHoldfast(pool.driver)
      for (const keys of [lockKey('a', 1), [lockKey('a', 1), lockKey('b', 2)]]) {
        expect(await hf.guard(keys, async () => 1)).toBe(1)
        expect(await hf.tryGuard(keys, async () => 2)).toMatchObject({ ok: true })
      }
      const version = await hf.transaction(async (tx) => {
        const found = await hf.rows.lock<{ version: number }>(tx, 'item', ['a'], {
          keyColumns: ['code'],
        })
        return Number(found.rows[0]?.version)
      })
      const changed = await hf.transaction(async (tx) =>
        hf.rows.updateVersioned(tx, 'item', 1, { version, set: { code: 'a' } }),
      )
      expect(Number(changed['version'])).toBe(version + 1)
    })

    test.runIf(isMysql)(
      'sql_mode ANSI of MySQL hides the engine, and is refused by its name',
      async () => {
        await using pool = place.pool(1)
        const handle = await pool.connect()
        await handle.query("SET SESSION sql_mode = 'ANSI'")
        await handle.release()
        const hf = createHoldfast(pool.driver)
        const claims = hf.claims({ table: 'item' })
        for (const call of [
          () => hf.guard(lockKey('a', 1), async () => 1),
          () => hf.once('a', async () => 1),
          () => hf.transaction(async (tx) => hf.rows.lock(tx, 'item', [1])),
          () => claims.claim(1),
        ])
          await expect(call()).rejects.toThrow(/sql_mode ANSI.*set ANSI_QUOTES/s)
      },
    )
  })
}, 'the server')
