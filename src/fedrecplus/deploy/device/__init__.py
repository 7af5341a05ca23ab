"""A node's side: the store of ratings, the reply to a round's request, and recommendations. Knows only the wire."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.deploy.device.budget import spent as spent
    from fedrecplus.deploy.device.identity import (
        Identities as Identities,
        own_key as own_key,
        pin_identities as pin_identities,
    )
    from fedrecplus.deploy.device.items import (
        MARKS as MARKS,
        FoundItem as FoundItem,
        find_item as find_item,
        mark_item as mark_item,
        marks_of as marks_of,
    )
    from fedrecplus.deploy.device.log import forks as forks, known_logs as known_logs
    from fedrecplus.deploy.device.models import (
        choose_table as choose_table,
        chosen_table as chosen_table,
        is_chosen as is_chosen,
        seen_tables as seen_tables,
        use_newest as use_newest,
    )
    from fedrecplus.deploy.device.owner import (
        import_many as import_many,
        import_own as import_own,
        known_catalogues as known_catalogues,
        last_upload as last_upload,
        recommend as recommend,
        top_list as top_list,
        unknown_items as unknown_items,
        used_model as used_model,
    )
    from fedrecplus.deploy.device.policy import (
        CHANNELS as CHANNELS,
        Policy as Policy,
        is_paused as is_paused,
        load_policy as load_policy,
        pause as pause,
        save_policy as save_policy,
        with_pin as with_pin,
    )
    from fedrecplus.deploy.device.round import answer as answer, load_clients as load_clients
    from fedrecplus.deploy.device.steps import stepped_tables as stepped_tables
    from fedrecplus.deploy.device.store import (
        BATCH as BATCH,
        OWNER as OWNER,
        StorageFull as StorageFull,
        Store as Store,
        remove_store as remove_store,
    )
    from fedrecplus.deploy.device.tasks import (
        KnownTask as KnownTask,
        agree as agree,
        known_tasks as known_tasks,
        propose as propose,
        task_named as task_named,
        withdraw as withdraw,
    )

lazily(__name__)
