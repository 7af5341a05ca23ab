"""What an operator has: a server's home, its processes, certificates, runs, schedule and checks."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.deploy.operate.certificates import (
        CA as CA,
        renewed_certificate as renewed_certificate,
        rotate as rotate,
    )
    from fedrecplus.deploy.operate.homes import ServerHome as ServerHome
    from fedrecplus.deploy.operate.processes import kept_alive as kept_alive
    from fedrecplus.deploy.operate.runs import Show as Show, run_local as run_local, run_to_the_end as run_to_the_end
    from fedrecplus.deploy.operate.schedule import seconds_of as seconds_of, train_again as train_again
    from fedrecplus.deploy.operate.serving import serving_processes as serving_processes
    from fedrecplus.deploy.operate.upkeep import back_up as back_up, look_over as look_over, restore as restore

lazily(__name__)
