/** A file that cannot keep what is promised is refused with its own error, and what was answered is never lost. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { freshPath, job, openAt, watchedDriver } from './open-file.ts';

/** Edits a closed file behind the store's back. */
function edit(path: string, sql: string): void {
  const database = new Database(path);
  database.exec(sql);
  database.close();
}

describe('opening', () => {
  test('a commit could be lost at power failure if any connection that writes were not synchronous = full', async () => {
    const path = freshPath();
    for (let opening = 0; opening < 2; opening++) {
      const driver = watchedDriver();
      const store = await openAt(path, { driver });
      const [writing] = driver.connections;
      expect(writing?.prepare('pragma synchronous').get()).toEqual({ synchronous: 2 });
      expect(writing?.prepare('pragma journal_mode').get()).toEqual({ journal_mode: 'wal' });
      expect(writing?.prepare('pragma busy_timeout').get()).toEqual({ timeout: 0 });
      await store.close();
    }
  });

  test('a text file is no store, and stays as it was', async () => {
    const path = freshPath();
    writeFileSync(path, 'dear diary, this is not a database at all');
    await expect(openAt(path)).rejects.toMatchObject({ code: 'foreign_file' });
    expect(readFileSync(path, 'utf8')).toBe('dear diary, this is not a database at all');
  });

  test("another program's database is no store, and gets no table of ours", async () => {
    const path = freshPath();
    edit(path, 'create table recipes (name text)');
    await expect(openAt(path)).rejects.toMatchObject({ code: 'foreign_file' });
    const database = new Database(path);
    expect(database.prepare('select name from sqlite_schema').all()).toEqual([{ name: 'recipes' }]);
    database.close();
  });

  test('a folder is no store', async () => {
    await expect(openAt(dirname(freshPath()))).rejects.toMatchObject({ code: 'foreign_file' });
  });

  test('a folder that does not exist is named', async () => {
    await expect(openAt('/nowhere/at/all/jobs.db')).rejects.toMatchObject({ code: 'storage_failed' });
  });

  test('a newer schema that breaks this version is refused and left alone', async () => {
    const path = freshPath();
    await (await openAt(path)).close();
    edit(path, 'update custody_schema set number = 900, compatible_from = 900');
    await expect(openAt(path)).rejects.toMatchObject({ code: 'newer_schema' });
  });

  test('a newer schema that is compatible opens, and says so', async () => {
    const path = freshPath();
    await (await openAt(path)).close();
    edit(path, 'update custody_schema set number = 900, compatible_from = 1');
    const warnings: string[] = [];
    const store = await openAt(path, { warn: (message) => warnings.push(message) });
    expect(await store.enqueue([job(1)])).toMatchObject([{ status: 'created' }]);
    expect(warnings).toEqual([expect.stringContaining('schema 900')]);
  });

  test('a copy whose counters lie behind its jobs would give tokens twice, so it does not open', async () => {
    const path = freshPath();
    const store = await openAt(path);
    await store.enqueue([job(1), job(2)]);
    await store.close();
    edit(path, 'update counter set next_id = 2');
    await expect(openAt(path)).rejects.toMatchObject({ code: 'storage_corrupt' });
  });

  test('a damaged file is called damaged', async () => {
    const path = freshPath();
    const store = await openAt(path);
    await store.enqueue(Array.from({ length: 200 }, (_, n) => job(n)));
    await store.close();
    edit(path, 'pragma wal_checkpoint(truncate)');
    const bytes = readFileSync(path);
    bytes.fill(0xee, 4096, bytes.length);
    writeFileSync(path, bytes);
    await expect(openAt(path)).rejects.toMatchObject({ code: 'storage_corrupt' });
  });

  test('a connection that may not write is called read-only, and nothing of the call is stored', async () => {
    const path = freshPath();
    const driver = watchedDriver();
    const store = await openAt(path, { driver });
    const [writing] = driver.connections;
    writing?.exec('pragma query_only = on');
    await expect(store.enqueue([job(1)])).rejects.toMatchObject({ code: 'storage_read_only' });
    writing?.exec('pragma query_only = off');
    expect(await store.enqueue([job(2)])).toMatchObject([{ status: 'created', id: 1 }]);
  });

  test('many stores that open a new file at once make its schema once, and all of them work', async () => {
    const path = freshPath();
    const stores = await Promise.all(Array.from({ length: 20 }, () => openAt(path)));
    await Promise.all(stores.map((store, n) => store.enqueue([job(n)])));
    expect((await stores[0]?.counts())?.states).toEqual({ 0: 20 });
  });
});

describe('a full disk', () => {
  test('refuses what does not fit, loses nothing that was answered, and goes on when there is space', async () => {
    const path = freshPath();
    const driver = watchedDriver();
    const store = await openAt(path, { driver });
    const [writing] = driver.connections;
    const answered: number[] = [];
    const enqueueBig = async (n: number): Promise<void> => {
      const [verdict] = await store.enqueue([{ ...job(n), payload: 'x'.repeat(50_000) }]);
      if (verdict?.status === 'created') answered.push(verdict.id);
    };
    await enqueueBig(0);
    const pages = Math.ceil(statSync(path).size / 4096) + 60;
    writing?.exec(`pragma max_page_count = ${pages}`);
    let refused: unknown;
    for (let n = 1; n < 100 && refused === undefined; n++) {
      await enqueueBig(n).catch((error: unknown) => {
        refused = error;
      });
    }
    expect(refused).toMatchObject({ code: 'storage_full' });
    await expect(enqueueBig(100)).rejects.toMatchObject({ code: 'storage_full' });
    writing?.exec('pragma max_page_count = 1000000');
    await enqueueBig(101);
    expect((await store.find({ limit: 1000 })).jobs.map(({ job: { id } }) => id)).toEqual(answered);
  });
});

describe('a commit whose answer is lost', () => {
  class LostAnswer extends Error {
    readonly code = 'SQLITE_IOERR_FSYNC';
  }

  test('is found to have taken effect, and its answer is given', async () => {
    const path = freshPath();
    const driver = watchedDriver();
    const store = await openAt(path, { driver });
    let lost = 0;
    driver.onExec = (text, execute) => {
      execute();
      if (text === 'commit' && lost++ === 0) throw new LostAnswer();
    };
    const [verdict] = await store.enqueue([job(1)]);
    expect(verdict).toMatchObject({ status: 'created', id: 1 });
    expect(await store.enqueue([job(2)])).toMatchObject([{ status: 'created', id: 2 }]);
    expect((await store.counts()).states).toEqual({ 0: 2 });
  });

  test('is known not to have happened while its transaction is still open', async () => {
    const path = freshPath();
    const driver = watchedDriver();
    const store = await openAt(path, { driver });
    let failures = 0;
    driver.onExec = (text, execute) => {
      if (text === 'commit' && failures++ === 0) throw new LostAnswer();
      execute();
    };
    await expect(store.enqueue([job(1)])).rejects.toMatchObject({ code: 'storage_failed' });
    expect((await store.counts()).states).toEqual({});
    expect(await store.enqueue([job(2)])).toMatchObject([{ status: 'created' }]);
  });

  test('rejects as unknown where the file cannot be asked any more', async () => {
    const path = freshPath();
    const driver = watchedDriver();
    const store = await openAt(path, { driver });
    let lost = 0;
    const open = driver.open.bind(driver);
    driver.onExec = (text, execute) => {
      execute();
      if (text !== 'commit' || lost++ > 0) return;
      driver.open = () => {
        throw Object.assign(new Error('gone'), { code: 'SQLITE_CANTOPEN' });
      };
      throw new LostAnswer();
    };
    await expect(store.enqueue([job(1)])).rejects.toMatchObject({ code: 'outcome_unknown' });
    driver.open = open;
    await expect(store.enqueue([job(2)])).rejects.toMatchObject({ code: 'storage_failed' });
    expect(await store.enqueue([job(3)])).toMatchObject([{ status: 'created' }]);
    expect((await store.counts()).states).toEqual({ 0: 2 });
  });
});

describe("another process's lock", () => {
  test('is waited for on a timer: the event loop goes on, and the call succeeds when the lock is free', async () => {
    const path = freshPath();
    const store = await openAt(path);
    const rival = new Database(path);
    rival.exec('begin immediate');
    let settled = false;
    const enqueued = store.enqueue([job(1)]).then((verdicts) => {
      settled = true;
      return verdicts;
    });
    for (let turn = 0; turn < 50; turn++) {
      await new Promise((resolve) => {
        setTimeout(resolve, 1);
      });
    }
    expect(settled).toBe(false);
    rival.exec('rollback');
    rival.close();
    expect(await enqueued).toMatchObject([{ status: 'created' }]);
  });

  test('a commit of another store wakes who listens here', async () => {
    const path = freshPath();
    const [here, there] = [await openAt(path), await openAt(path)];
    const woken = new Promise<readonly string[]>((resolve) => {
      here.subscribe(({ queues }) => resolve(queues));
    });
    await there.enqueue([job(1)]);
    // Which queue it was a number in the file does not say: empty stands for any.
    expect(await woken).toEqual([]);
  });
});

describe('group commit', () => {
  test('one call of a batch that fails does not fail the others', async () => {
    const store = await openAt(freshPath());
    const impossible = { ...job(2), delayMs: Number.MAX_SAFE_INTEGER };
    const [first, second, third] = await Promise.allSettled([
      store.enqueue([job(1)]),
      store.enqueue([impossible]),
      store.enqueue([job(3)]),
    ]);
    expect(first?.status).toBe('fulfilled');
    expect(second).toMatchObject({ status: 'rejected', reason: { code: 'invalid_input' } });
    expect(third?.status).toBe('fulfilled');
    expect((await store.counts()).states).toEqual({ 0: 2 });
  });

  test('calls made before close are answered, and later ones are refused', async () => {
    const path = freshPath();
    const store = await openAt(path);
    const enqueued = store.enqueue([job(1)]);
    const closed = store.close();
    await expect(store.enqueue([job(2)])).rejects.toMatchObject({ code: 'store_closed' });
    expect(await enqueued).toMatchObject([{ status: 'created' }]);
    await closed;
    expect((await (await openAt(path)).counts()).states).toEqual({ 0: 1 });
  });
});
